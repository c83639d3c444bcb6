"""Writes the pages and passages of the documentation that are made from the code.

    python docs/generate.py            write them
    python docs/generate.py --check    write nothing; exit code 1 and their names when some are out of date

The code stays the only place where a column, a metric, an option or an exit code is described.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from inspect import cleandoc
from pathlib import Path
from textwrap import dedent

import polars as pl
from typer.testing import CliRunner

from tracekit.analyses import ANALYSES
from tracekit.cli import COMMANDS, app
from tracekit.engine.derived import DERIVED
from tracekit.instrument.settings import Settings
from tracekit.model import records
from tracekit.model.analysis import Analysis
from tracekit.model.errors import ExitCode
from tracekit.model.metric import METRICS
from tracekit.model.records import SIDECAR_SUFFIX, SIDECAR_VERSION
from tracekit.model.table import DType, Table
from tracekit.model.tables import TABLES

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "analyses" / "pages"
WIDTH = 88
"""Columns of a captured terminal: what fits a README without scrolling."""

NOTE = "<!-- Written by docs/generate.py. Change the code that it describes, then run `make docs`. -->"

EXIT_CODES: Mapping[ExitCode, str] = {
    ExitCode.OK: "Fine. Single recordings may still have been left out, each with a warning.",
    ExitCode.REGRESSION: "Kept for gates: a regression, or a budget that was not kept. No command of this version returns it.",
    ExitCode.USAGE: "Wrong usage: an option, a value or a combination that cannot be meant.",
    ExitCode.UNREADABLE: "Nothing could be read or analysed: missing path, no traces, not a trace.",
    ExitCode.NO_VERDICT: "No verdict: runs too unsteady to be judged, or tracekit itself failed.",
}


def data_dictionary() -> str:
    """Every table with its columns: read, derived, answered."""
    parts = (
        ("Tables of a run", 'What readers fill: `run.events`, `run["events"]`.', TABLES),
        ("Derived tables", "What several analyses need, computed once.", [analysis.table for analysis in DERIVED]),
        ("Tables of analyses", 'What analyses answer: `report.tables["breakdown"]`.', [a.table for a in ANALYSES]),
    )
    sections = [
        "# Data dictionary",
        "Times are whole nanoseconds from the run's origin. A column's name carries its unit: `_ns`, `_bytes`, `_ratio`.\n"
        "A row belongs to a timeline, the pair of `rank` and `window`: one recording of one rank.",
    ]
    for title, text, tables in parts:
        sections += [f"## {title}", text, *(_table(table) for table in tables)]
    return _page(sections)


def _table(table: Table) -> str:
    rows = [
        (f"`{column.name}`", type_name(column.dtype), column.unit, "yes" if column.nullable else "", column.doc)
        for column in table.columns
    ]
    return f"### `{table.name}`\n\n{table.doc}\n\n" + grid(("column", "type", "unit", "null", "meaning"), rows)


def type_name(dtype: DType) -> str:
    """A column type in words: ``int64``, ``category``, ``list of string``."""
    if isinstance(dtype, pl.List):
        return f"list of {type_name(dtype.inner)}"
    if isinstance(dtype, pl.Enum | pl.Categorical) or dtype in {pl.Enum, pl.Categorical}:
        return "category"
    return str(dtype).lower()


def metrics() -> str:
    """The catalogue of metrics."""
    rows = [(f"`{m.key}`", m.title, m.unit.value, m.direction.value, m.doc) for m in METRICS]
    return _page(
        [
            "# Metrics",
            "The numbers that tracekit reports, compares and gates. *Better* says which way an improvement goes; `neutral`\n"
            "numbers describe. How they are defined, and what adds up to what: [definitions](../definitions.md).",
            grid(("key", "name", "unit", "better", "meaning"), rows),
        ]
    )


def analyses() -> str:
    """Each analysis: its question, method and limits, from its docstring."""
    sections = [
        "# Analyses",
        "An analysis answers one question with one table. `tracekit analyze --json --tables NAME` prints its table,\n"
        "`report.tables[NAME]` holds it. An analysis whose tables are missing or empty is skipped, with the reason said.",
    ]
    return _page([*sections, *map(_analysis, ANALYSES)])


def _analysis(analysis: Analysis) -> str:
    question, _, rest = cleandoc(sys.modules[analysis.compute.__module__].__doc__ or "").partition("\n")
    facts = [f"Table: [`{analysis.name}`](data-dictionary.md#{analysis.name})."]
    facts.append("Needs: " + ", ".join(f"`{need}`" for need in analysis.needs) + ".")
    if analysis.codes:
        facts.append("Finds: " + ", ".join(f"[{code}](findings/{code}.md)" for code in analysis.codes) + ".")
    return f"## `{analysis.name}`\n\n*{question}*\n\n{rest.strip()}\n\n{' '.join(facts)}"


def findings() -> str:
    """The index of finding codes; the pages themselves are ``analyses/pages``, linked into the documentation."""
    finder = {code: analysis.name for analysis in ANALYSES for code in analysis.codes}
    rows = [(f"[{code}](findings/{code}.md)", title, f"`{finder.get(code, '')}`") for code, title in codes().items()]
    return _page(
        [
            "# Findings",
            "A finding says what costs time, on which ranks, and what it costs a step, as an interval. Its code is stable;\n"
            "`tracekit explain CODE` prints its page in the terminal.",
            grid(("code", "what it says", "analysis"), rows),
        ]
    )


def codes() -> dict[str, str]:
    """The title of each code's page."""
    first_lines = {page.stem: page.read_text("utf-8").partition("\n")[0] for page in sorted(PAGES.glob("TK-*.md"))}
    return {code: line.removeprefix(f"# {code}:").strip() for code, line in first_lines.items()}


def commands() -> str:
    """The help of every command, as a terminal shows it."""
    sections = [
        "# Commands",
        "Data goes to standard output, speech and progress to standard error. The codes they end with:\n"
        "[exit codes](exit-codes.md).",
        "## `tracekit`",
        _help(),
    ]
    for command in COMMANDS:
        sections += [f"## `tracekit {command.__name__}`", _help(command.__name__)]
    return _page(sections)


def _help(*command: str) -> str:
    shown = CliRunner().invoke(app, [*command, "--help"], prog_name="tracekit", terminal_width=WIDTH)
    return _fenced(shown.output)


def exit_codes() -> str:
    """What each exit code means."""
    rows = [(str(code.value), code.name.lower().replace("_", " "), EXIT_CODES[code]) for code in ExitCode]
    return _page(
        [
            "# Exit codes",
            "Exit codes are an interface: they do not change their meaning. Every error is one line on standard error that says\n"
            "what happened, where, and what to do.",
            grid(("code", "name", "meaning"), rows),
            "130 and 141 are the shell's own: interrupted, and the reader of standard output went away.",
        ]
    )


def sidecar() -> str:
    """The file that the recorder writes beside a trace."""
    sections = [
        "# Sidecar",
        f"What the recorder writes beside each trace, as JSON: `rank<N>{SIDECAR_SUFFIX}`, version {SIDECAR_VERSION}. Fields are only added\n"
        "within a version; what is not known is left out. No environment, path, host or user name is in it.",
    ]
    kinds = [kind for kind in vars(records).values() if isinstance(kind, type) and issubclass(kind, records.Record)]
    for kind in sorted(
        (k for k in kinds if k not in {records.Record, records.StepLine}), key=lambda k: k is not records.Sidecar
    ):
        rows = [(f"`{name}`", f"`{kind.__annotations__[name]}`", doc) for name, doc in field_docs(kind).items()]
        sections += [f"## `{kind.__name__}`", cleandoc(kind.__doc__ or ""), grid(("field", "type", "meaning"), rows)]
    return _page(sections)


def settings() -> str:
    """The settings of a recording."""
    defaults = {each.name: "" if each.default is MISSING else repr(each.default) for each in fields(Settings)}
    return grid(
        ("setting", "default", "meaning"),
        [
            (f"`{name}`", f"`{defaults[name]}`" if defaults[name] else "", doc)
            for name, doc in field_docs(Settings).items()
        ],
    )


def field_docs(kind: type) -> dict[str, str]:
    """Fields of a class with the string that follows each in its source."""
    (body,) = [node.body for node in ast.parse(dedent(inspect.getsource(kind))).body if isinstance(node, ast.ClassDef)]
    docs: dict[str, str] = {}
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            said = following.value if isinstance(following, ast.Expr) else None
            docs[node.target.id] = " ".join(str(said.value).split()) if isinstance(said, ast.Constant) else ""
    return docs


def capture() -> str:
    """What a terminal shows of the sample in which one rank is late."""
    command = ("analyze", "sample_traces/ddp_late_rank")
    environment = {**os.environ, "COLUMNS": str(WIDTH), "PYTHONIOENCODING": "utf-8", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, "-m", "tracekit.cli", *command, "--no-cache"],
        capture_output=True,
        check=False,
        cwd=ROOT,
        encoding="utf-8",
        env=environment,
    )
    if done.returncode:
        sys.exit(f"docs/generate.py: tracekit {' '.join(command)}: {done.stderr.strip()}")
    return _fenced(f"$ tracekit {' '.join(command)}\n{done.stdout}")


GENERATED: Mapping[str, Callable[[], str]] = {
    "docs/reference/analyses.md": analyses,
    "docs/reference/commands.md": commands,
    "docs/reference/data-dictionary.md": data_dictionary,
    "docs/reference/exit-codes.md": exit_codes,
    "docs/reference/findings.md": findings,
    "docs/reference/metrics.md": metrics,
    "docs/reference/sidecar.md": sidecar,
}
"""Whole pages."""

PASSAGES: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "README.md": {"capture": capture},
    "docs/index.md": {"capture": capture},
    "docs/recording.md": {"settings": settings},
}
"""Passages of pages written by hand, between ``<!-- generated: NAME -->`` and ``<!-- end -->``."""


def with_passage(text: str, name: str, passage: str) -> str:
    """*text* with *passage* between the marks of *name*. Raises ``ValueError`` when the marks are not there once."""
    marks = re.compile(rf"(<!-- generated: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    changed, count = marks.subn(lambda match: f"{match[1]}{passage}\n{match[2]}", text)
    if count != 1:
        raise ValueError(f"{count} passages are marked `<!-- generated: {name} -->`, not one")
    return changed


def wanted() -> dict[Path, str]:
    """Every generated file with the text that it should hold."""
    files = {ROOT / name: make() for name, make in GENERATED.items()}
    made = {make: make() for passages in PASSAGES.values() for make in passages.values()}
    for name, passages in PASSAGES.items():
        text = (ROOT / name).read_text("utf-8")
        for mark, make in passages.items():
            text = with_passage(text, mark, made[make])
        files[ROOT / name] = text
    return files


def stale(files: Mapping[Path, str]) -> list[Path]:
    """The files that do not hold their text."""
    return [path for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text]


def grid(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; a bar within a cell stays one."""
    lines = [list(header), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _fenced(text: str) -> str:
    lines = [line.rstrip() for line in text.strip("\n").splitlines()]
    return "\n".join(["```text", *lines, "```"])


def _page(sections: Iterable[str]) -> str:
    return "\n\n".join([NOTE, *sections]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when something is out of date")
    options = parser.parse_args()
    files = wanted()
    old = stale(files)
    names = "\n".join(f"  {path.relative_to(ROOT)}" for path in old)
    if options.check and old:
        sys.exit(f"out of date, run `make docs`:\n{names}")
    for path in old:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], "utf-8")
    if old:
        print(f"wrote\n{names}")


if __name__ == "__main__":
    main()
