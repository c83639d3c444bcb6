"""Which kernels, and which kinds of work, take the time."""

from __future__ import annotations

from tests.builders import compute, context, kernel
from tracekit.analyses import kernel_classes, kernels

US = 1000


def test_sums_by_name() -> None:
    table = compute(
        kernels.ANALYSIS,
        kernel("a", 0, 30, cls="gemm"),
        kernel("a", 30, 40, cls="gemm"),
        kernel("b", 0, 10, cls="copy"),
    )
    names = ("name", "class", "count", "total_ns", "mean_ns", "min_ns", "max_ns", "share_ratio")
    assert table.select(names).rows() == [
        ("a", "gemm", 2, 40, 20.0, 10, 30, 0.8),
        ("b", "copy", 1, 10, 10.0, 10, 10, 0.2),
    ]


def test_sums_by_class() -> None:
    """Two streams at once: the total is twice the time in which the class ran."""
    rows = [
        kernel("a", 0, 30, cls="gemm", lane=7),
        kernel("b", 0, 30, cls="gemm", lane=8),
        kernel("c", 30, 40, cls="copy"),
    ]
    table = compute(kernel_classes.ANALYSIS, *rows, before=[kernels.ANALYSIS])
    assert table.select("class", "count", "total_ns", "union_ns", "largest").rows() == [
        ("gemm", 2, 60, 30, ["a", "b"]),
        ("copy", 1, 10, 10, ["c"]),
    ]


def found(*rows: dict[str, object]) -> list[str]:
    table = compute(kernels.ANALYSIS, *rows)
    return [finding.code for finding in kernels.find(table, context(step_ns=1000 * US))]


def test_many_tiny_kernels() -> None:
    tiny = [kernel("elementwise", 20 * US * i, 20 * US * i + 9 * US, cls="elementwise") for i in range(30)]
    assert found(*tiny) == ["TK-KERNEL-TINY"]
    assert found(*tiny[:4], kernel("gemm", 0, 900 * US, cls="gemm")) == []


def test_products_in_fp32() -> None:
    assert found(kernel("volta_sgemm_128x32_nt", 0, 400 * US, cls="gemm")) == ["TK-GEMM-FP32"]
    assert found(kernel("ampere_bf16_s16816gemm_bf16_128x64", 0, 400 * US, cls="gemm")) == []
    half = kernel("ampere_bf16_s16816gemm_bf16_128x64", 0, 400 * US, cls="gemm")
    assert found(half, kernel("volta_sgemm_128x32_nt", 400 * US, 415 * US, cls="gemm")) == []


def test_attention_that_materialises_its_scores() -> None:
    gemm = kernel("gemm", 0, 400 * US, cls="gemm")
    assert found(gemm, kernel("softmax_warp_forward", 400 * US, 500 * US, cls="softmax")) == ["TK-ATTN-UNFUSED"]
    assert found(gemm, kernel("softmax_warp_forward", 400 * US, 430 * US, cls="softmax")) == []
    assert found(gemm, kernel("flash_fwd_kernel", 400 * US, 500 * US, cls="attention_flash")) == []


def test_unclassified_kernels_are_named() -> None:
    def codes(other_ns: int) -> list[str]:
        rows = [kernel("a", 0, 100, cls="gemm"), kernel("mystery", 100, 100 + other_ns)]
        table = compute(kernel_classes.ANALYSIS, *rows, before=[kernels.ANALYSIS])
        return [finding.cause for finding in kernel_classes.find(table, context())]

    assert codes(20) == ["The largest: mystery."]
    assert codes(10) == []
