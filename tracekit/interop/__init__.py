"""Hand a loaded run to other tools."""
