"""Speed and memory, measured in pairs: ``make bench`` or ``python -m benchmarks``."""
