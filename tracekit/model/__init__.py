"""The vocabulary: tables, metrics, findings, reports. Everything may import it; it imports nothing of tracekit."""
