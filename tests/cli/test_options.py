"""Values of options."""

from __future__ import annotations

import pytest
import typer

from tracekit.cli.options import parse_names, parse_ranks, parse_steps


def test_steps() -> None:
    assert parse_steps("4") == range(4, 5)
    assert parse_steps("3-5") == range(3, 6)


def test_ranks() -> None:
    assert parse_ranks("0,2-3, 2") == {0, 2, 3}


def test_names() -> None:
    assert parse_names("kernels, idle,") == {"kernels", "idle"}


@pytest.mark.parametrize("text", ["", "a", "5-3", "1-2-3", "-1"])
def test_what_is_not_understood_is_said(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="steps are written as 4 or 3-5"):
        parse_steps(text)
