"""Kineto traces (torch.profiler's Chrome-trace JSON), every dialect since 2021.

`blocks` cuts the text into runs of whole events, `decode` turns a run into typed events, falling back to one event at a
time where the text is damaged, `columns` gathers them into arrays, `reader` puts it together.
"""

from tracekit.readers.kineto.reader import read

__all__ = ["read"]
