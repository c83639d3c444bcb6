"""Which kernels, and which kinds of work, take the time."""

from __future__ import annotations

import pytest

from tests.builders import Row, compute, context, kernel, step
from tracekit.analyses import kernel_classes, kernels
from tracekit.model.finding import Finding

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


def test_figures_per_step_are_of_what_complete_steps_launched() -> None:
    """Of four kernels, one was launched before the steps and one in a step that is cut off; one runs after its step."""
    table = compute(
        kernels.ANALYSIS,
        step(0, 100, 200),
        step(1, 200, 300, complete=False),
        kernel("a", 50, 60),
        kernel("a", 120, 140, step=0),
        kernel("a", 290, 340, step=0),
        kernel("a", 400, 410, step=1),
    )
    names = ("count", "total_ns", "tiny", "step_count", "step_total_ns", "step_tiny", "step_tiny_ns")
    assert table.select(names).rows() == [(4, 90, 4, 2, 70, 2, 70)]


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


def findings(*rows: Row, device: str = "NVIDIA A100-SXM4-80GB") -> list[Finding]:
    return list(kernels.find(compute(kernels.ANALYSIS, *rows), context(step_ns=1000 * US, devices=[device])))


def found(*rows: Row) -> list[str]:
    return [finding.code for finding in findings(*rows)]


def test_many_tiny_kernels() -> None:
    tiny = [kernel("elementwise", 20 * US * i, 20 * US * i + 9 * US, cls="elementwise") for i in range(30)]
    assert found(*tiny) == ["TK-KERNEL-TINY"]
    assert found(*tiny[:4], kernel("gemm", 0, 900 * US, cls="gemm")) == []


def test_products_in_fp32() -> None:
    assert found(kernel("volta_sgemm_128x32_nt", 0, 400 * US, cls="gemm")) == ["TK-GEMM-FP32"]
    assert found(kernel("ampere_bf16_s16816gemm_bf16_128x64", 0, 400 * US, cls="gemm")) == []
    half = kernel("ampere_bf16_s16816gemm_bf16_128x64", 0, 400 * US, cls="gemm")
    assert found(half, kernel("volta_sgemm_128x32_nt", 400 * US, 415 * US, cls="gemm")) == []


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("ampere_sgemm_32x128_tn", ["TK-GEMM-FP32"]),
        ("volta_scudnn_128x64_relu_interior_nn_v1", ["TK-GEMM-FP32"]),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n", ["TK-GEMM-FP32"]),
        ("Cijk_Alik_Bljk_SB_MT128x128x8", ["TK-GEMM-FP32"]),
        ("cutlass_80_tensorop_s1688gemm_128x64_32x6_nt_align1", ["TK-GEMM-TF32"]),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n", ["TK-GEMM-TF32"]),
        ("turing_fp16_s1688gemm_fp16_128x128_ldg8_tn", []),
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8", []),
        ("Cijk_Alik_Bljk_BBS_BH_MT128x128x32", []),
    ],
)
def test_precision_is_read_from_the_name(name: str, codes: list[str]) -> None:
    assert found(kernel(name, 0, 400 * US, cls="gemm")) == codes


@pytest.mark.parametrize(
    ("device", "says", "does_not_say"),
    [
        ("NVIDIA H100 80GB HBM3", "bfloat16", "GradScaler"),
        ("Tesla V100-SXM2-32GB", "GradScaler", "bfloat16"),
        ("Tesla T4", "GradScaler", "float32_matmul_precision"),
        ("AMD Instinct MI300X", "bfloat16", "float32_matmul_precision"),
    ],
)
def test_remedy_for_fp32_is_one_that_the_device_has(device: str, says: str, does_not_say: str) -> None:
    (finding,) = findings(kernel("volta_sgemm_128x32_nt", 0, 400 * US, cls="gemm"), device=device)
    assert says in finding.remedy
    assert does_not_say not in finding.remedy


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
