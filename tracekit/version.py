"""The version, for whoever must not import the package to know it."""

__version__ = "0.1.0"
