"""Names as a person can read them in a line."""

from __future__ import annotations

import pytest

from tracekit.model.short_names import short_name, shorten


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("gemm", "gemm"),
        ("ncclKernel_AllReduce(ncclDevComm*, unsigned long)", "ncclKernel_AllReduce"),
        (
            "void at::native::f<4, add(int)::{lambda(int)#1}>(int, at::detail::Array<char*, 2>)",
            "f<4, add(int)::{lambda(int)#1}>",
        ),
        ("void (anonymous namespace)::g<int>((anonymous namespace)::P, f(*)(int))", "g<int>"),
        ("void h(float*) [clone .kd]", "h"),
        ("(odd)", "(odd)"),
        ("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"),
        ("unbalanced)", "unbalanced)"),
        ("", ""),
    ],
)
def test_short_name(name: str, short: str) -> None:
    assert short_name(name) == short


@pytest.mark.parametrize(
    ("width", "expected"), [(11, "hello world"), (10, "hello…orld"), (5, "he…ld"), (2, "h…"), (1, "…"), (0, "")]
)
def test_shorten_takes_from_the_middle(width: int, expected: str) -> None:
    assert shorten("hello world", width) == expected
    assert len(shorten("hello world", width)) <= width
