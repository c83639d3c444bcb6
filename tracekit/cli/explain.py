"""`tracekit explain`: the page of a finding's code."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Final

import typer

import tracekit
from tracekit.cli.streams import emit, show, stdout_console
from tracekit.model.errors import UsageError

_PAGES: Final = Path(tracekit.__file__).parent / "analyses" / "pages"  # by path: importing the analyses brings polars


def codes() -> list[str]:
    """Every code that has a page."""
    return sorted(page.stem for page in _PAGES.glob("TK-*.md"))


def _complete(incomplete: str) -> list[str]:
    return [code for code in codes() if code.startswith(incomplete.upper())]


def explain(
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="[CODE]",
            help="Code of a finding; none lists them all.",
            autocompletion=_complete,
            show_default=False,
        ),
    ] = None,
) -> None:
    """Explain the code of a finding.

    \b
    Example:
      tracekit explain TK-COMM-EXPOSED
    """  # noqa: D301  click keeps the lines of a paragraph marked with it
    if code is None:
        emit(_listing({name: _title(name) for name in codes()}))
        return
    text = _page(_resolve(code)).read_text(encoding="utf-8")
    if not stdout_console().is_terminal:
        emit(text)
        return
    from rich.markdown import Markdown

    show(Markdown(text))


def _resolve(code: str) -> str:
    """The code meant by *code*: in any case, with or without its ``TK-``."""
    wanted = code.upper() if code.upper().startswith("TK-") else f"TK-{code.upper()}"
    known = codes()
    if wanted in known:
        return wanted
    near = get_close_matches(wanted.removeprefix("TK-"), [known_code.removeprefix("TK-") for known_code in known], n=1)
    hint = f"did you mean TK-{near[0]}?" if near else "`tracekit explain` lists every code"
    raise UsageError("no such code", where=code, remedy=hint)


def _page(code: str) -> Path:
    return _PAGES / f"{code}.md"


def _title(code: str) -> str:
    """The title of *code*'s page, without the code."""
    with _page(code).open(encoding="utf-8") as page:
        return page.readline().lstrip("# ").removeprefix(f"{code}:").strip()


def _listing(titles: Mapping[str, str]) -> str:
    width = max(map(len, titles), default=0)
    return "\n".join(f"{code:<{width}}  {title}" for code, title in titles.items())
