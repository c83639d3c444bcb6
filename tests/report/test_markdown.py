"""The report as Markdown."""

from __future__ import annotations

from dataclasses import replace

from tests.report.build import FINDING, breakdown_row, make_report
from tracekit.model.report import Skipped
from tracekit.report.markdown import analyze_markdown

MS = 1_000_000


def test_a_whole_report() -> None:
    rows = [breakdown_row(0, compute=10 * MS, exposed=4 * MS, overlapped=1 * MS, idle=6 * MS)]
    report = make_report(
        rows,
        steps=[{**rows[0], "step": 3}],
        ranks=[{"rank": 0, "world_size": 8, "device_name": "A100"}],
        findings=(FINDING, replace(FINDING, code="TK-SYNC", ranks=(), cost_ns=(0, 0))),
        skipped=(Skipped(analysis="copies", reason="no copies"),),
        notes=("one note",),
    )
    assert analyze_markdown(report, top=1).splitlines() == [
        "### tracekit: run/",
        "",
        "1 of 8 ranks · 1 step · A100",
        "",
        "**step 20.0 ms** (one step)",
        "",
        "| rank | compute | communication, exposed | copies, exposed | idle | total | communication under compute |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| rank 0 | 10.0 ms | 4.00 ms | 0 ns | 6.00 ms | 20.0 ms | 20.0 % |",
        "",
        "- communication 5.00 ms, waiting for other ranks included; 20.0 % of it runs under compute",
        "",
        "**What costs most**",
        "",
        "| finding | severity | confidence | cost per step | ranks |",
        "| --- | --- | --- | ---: | --- |",
        "| `TK-COMM-EXPOSED` | high | medium | 1.00 ms to 4.00 ms (20.0 %) | ranks 0-1 |",
        "| `TK-SYNC` | high | medium | not priced | all |",
        "",
        "- `TK-COMM-EXPOSED` 4.00 ms of communication is exposed",
        "  - Cause: it is launched after the compute that could hide it",
        r"  - Try: DistributedDataParallel(..., bucket\_cap\_mb=100)",
        "  - Measured: exposed communication 4.00 ms",
        "",
        "Health: 120 events read · 0 repaired · 0 dropped",
        "",
        "- one note",
        "- not analysed: copies (no copies)",
    ]


def test_a_rank_without_communication_has_no_ratio() -> None:
    assert "| no communication |" in analyze_markdown(make_report([breakdown_row(0, compute=10, exposed=0)]))


def test_nothing_measured() -> None:
    text = analyze_markdown(make_report([], ranks=[{"rank": 0, "status": "empty"}]))
    assert "Nothing was measured" in text
    assert "finding" not in text


def test_names_stay_text() -> None:
    kernels = [{"name": "evil`|<img src=x> @team\n# heading", "class": "other", "count": 1, "total_ns": 5}]
    text = analyze_markdown(
        make_report([breakdown_row(0, compute=10, exposed=0)], title="<b>[x](y)", tables={"kernels": kernels})
    )
    assert r"### tracekit: &lt;b&gt;\[x\](y)" in text
    assert r"| `evil'\|<img src=x> @team�# heading` | other | 1 | 5 ns | 100 % |" in text
