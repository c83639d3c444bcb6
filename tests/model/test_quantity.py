"""Numbers as text: three significant digits, exact, and never a NaN."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.model import quantity


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 ns"),
        (1, "1 ns"),
        (999, "999 ns"),
        (12.5, "12.5 ns"),
        (1_000, "1.00 µs"),
        (12_345, "12.3 µs"),
        (1_245_000, "1.25 ms"),
        (1_244_999, "1.24 ms"),
        (999_499, "999 µs"),
        (999_500, "1.00 ms"),
        (411_954_321, "412 ms"),
        (95_123_456_789, "95.1 s"),
        (1_349_500_000_000, "1,350 s"),
        (-1_250_000, "-1.25 ms"),
        (float("nan"), "unknown"),
    ],
)
def test_ns(value: float, text: str) -> None:
    assert quantity.ns(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0 B"), (512, "512 B"), (33_554_432, "33.6 MB"), (80 * 10**9, "80.0 GB"), (10**18, "1,000 PB")],
)
def test_size(value: int, text: str) -> None:
    assert quantity.size(value) == text


def test_rate() -> None:
    assert quantity.rate(176.4e9) == "176 GB/s"
    assert quantity.rate(float("inf")) == "unknown"


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.0, "0 %"),
        (0.5, "50.0 %"),
        (0.5888, "58.9 %"),
        (1.0, "100 %"),
        (0.012345, "1.23 %"),
        (0.0012, "0.12 %"),
        (0.00001, "<0.01 %"),
        (-0.00001, ">-0.01 %"),
        (-0.081, "-8.10 %"),
        (12.5, "1,250 %"),
        (float("nan"), "unknown"),
    ],
)
def test_percent(ratio: float, text: str) -> None:
    assert quantity.percent(ratio) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (120_554, "120,554"), (12.5, "12.5"), (1_310_000.0, "1,310,000"), (float("nan"), "unknown")],
)
def test_count(value: float, text: str) -> None:
    assert quantity.count(value) == text


def test_of_uses_the_unit_of_a_quantity() -> None:
    assert [quantity.of(1500, unit) for unit in ("ns", "bytes", "bytes_per_s", "count", "hops")] == [
        "1.50 µs",
        "1.50 kB",
        "1.50 kB/s",
        "1,500",
        "1,500 hops",
    ]
    assert quantity.of(0.25, "ratio") == "25.0 %"


@given(st.integers(min_value=1, max_value=10**14))
def test_ns_text_is_within_half_a_digit_of_the_value(value: int) -> None:
    number, unit = quantity.ns(value).replace(",", "").split(" ")
    factor = {"ns": 1, "µs": 10**3, "ms": 10**6, "s": 10**9}[unit]
    assert abs(float(number) * factor - value) <= value * 0.005 + 1e-6
