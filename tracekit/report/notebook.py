"""A report as a notebook shows it."""

from __future__ import annotations

from tracekit.model.quantity import ns
from tracekit.model.report import Report
from tracekit.report.markdown import analyze_markdown
from tracekit.report.phrases import plural

_TOP = 5


class ShownReport(Report):
    """A report that shows itself: as Markdown where that is rendered, else in a line."""

    __slots__ = ()

    def __repr__(self) -> str:
        """What was analysed and how much was found; the tables are too long for a prompt."""
        length = f"{'step' if self.steps else 'window'} {ns(self.step_ns)}"
        found = f"{plural(len(self.findings), 'finding')}, {plural(len(self.tables), 'table')}"
        return f"<tracekit report {self.title!r}: {length}, {found}>"

    def _repr_markdown_(self) -> str:
        return analyze_markdown(self, top=_TOP)
