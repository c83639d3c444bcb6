"""What a name stands for: communication families and kernel classes, decided once per distinct name.

The rules are tables, most specific first; the first that matches decides. They match whole words of the field's own
spellings, never a bare prefix such as ``hip`` or a word such as ``reduce`` that compute kernels use as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Communication:
    """What the name of a communication kernel or range says."""

    family: str
    op: str
    algorithm: str | None = None


@dataclass(frozen=True, slots=True)
class _Family:
    """Names of one library's communication."""

    name: str
    pattern: re.Pattern[str]
    op: str = ""
    """The operation, where the family has only one; else it is read from the name."""


def _families(*rows: tuple[str, str] | tuple[str, str, str]) -> tuple[_Family, ...]:
    return tuple(_Family(row[0], re.compile(row[1]), *row[2:]) for row in rows)


# On the device. NCCL's spellings: ncclKernel_AllReduce_RING_LL_Sum_float (to 2.18), ncclDevKernel_AllReduce_Sum_f32_RING_LL
# (2.19 on), ncclSymkDevKernel_..., ncclSymDevKernel_... (symmetric memory, 2.27 on); RCCL uses the same and ..._Generic.
_DEVICE_FAMILIES = _families(
    ("nccl", r"\b(m?nccl|rccl)\w*(Kernel|DevFunc|DevKernel|Symk?)"),
    ("nccl", r"\bnccl[A-Z_]\w*"),
    ("msccl", r"\bmscclpp\b|\bmscclKernel|\bmscclpp_|\bmsccl::"),
    ("symmetric_memory", r"\bmultimem_(all_reduce|one_shot_all_reduce|one_shot_reduce)\w*", "all_reduce"),
    ("symmetric_memory", r"\b(one|two)_shot_all_reduce\w*", "all_reduce"),
    ("symmetric_memory", r"\bmultimem_all_gather\w*", "all_gather"),
    ("symmetric_memory", r"\breduce_scatter_out\w*kernel|\bmultimem_reduce_scatter\w*", "reduce_scatter"),
    ("custom_all_reduce", r"\bcross_device_reduce_[12]stage\w*", "all_reduce"),
    ("custom_all_reduce", r"\b(one|two)ShotAllReduceKernel\w*|\blamport\w*[aA]ll[rR]educe|\ballreduce_fusion_kernel\w*", "all_reduce"),
    ("custom_all_reduce", r"\btrtllm_\w*allreduce\w*|\b(moe_finalize_)?allreduce_fusion\w*|\ballReduce(Fusion|Norm)\w*", "all_reduce"),
    ("custom_all_reduce", r"\b(quick_reduce|quickreduce|allreduce_prototype)\w*|\baiter\w*::\w*[aA]ll_?[rR]educe", "all_reduce"),
    ("custom_all_reduce", r"\breduce_scatter_cross_device\w*", "reduce_scatter"),
    ("custom_all_reduce", r"\ball_?gather_(lamport|cross_device)\w*", "all_gather"),
    ("deep_ep", r"\b(deep_ep|inter_?node(_ll)?|intra_?node)::(\w+::)*(cached_)?(notify_)?dispatch\b", "dispatch"),
    ("deep_ep", r"\b(deep_ep|inter_?node(_ll)?|intra_?node)::(\w+::)*(cached_)?(notify_)?combine\b", "combine"),
    ("deep_ep", r"\b(deep_ep|internode(_ll)?|intranode)::(\w+::)*barrier\b", "barrier"),
    ("pplx", r"\b(pplx|all_to_all_(intra|inter)node)\w*(::\w+)*[dD]ispatch\w*", "dispatch"),
    ("pplx", r"\b(pplx|all_to_all_(intra|inter)node)\w*(::\w+)*[cC]ombine\w*", "combine"),
    ("nvshmem", r"\bnvshmemi?x?_\w*(barrier|sync)\w*|\bbarrier_on_stream_kernel\w*", "barrier"),
    ("nvshmem", r"\bnvshmemi?x?_\w+|\bnvshmem::"),
    ("userbuffers", r"\bk?userbuffers_\w*|\bkuserbuffers_\w+"),
    ("ixccl", r"\b(hccl|xccl|oneccl|ccl)_\w*(all|reduce|gather|broadcast|send|recv)\w*", ""),
    ("hccl", r"^hcom_\w+|^Hccl[A-Z]\w+|^hccl(Kernel|AicpuKernel)\w*"),
    ("oneccl", r"\boneapi::ccl\w*|\bccl::\w*(allreduce|allgather|reduce_scatter|alltoall|broadcast)\w*|^oneccl_\w+"),
    ("xla", r"^(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|collective-broadcast)"
            r"(-start|-done|-fusion|-scatter-fusion)?([._]\w+)*$"),
    ("xla", r"^(async-)?(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)[\w.-]*$"),
)  # fmt: skip

# On host threads: backends that run there.
_HOST_FAMILIES = _families(("gloo", r"^gloo:"), ("mpi", r"^mpi:|^MPI_[A-Z]"), ("ucc", r"^ucc:"))

_OPERATIONS = tuple(
    (op, re.compile(pattern, re.IGNORECASE))
    for op, pattern in (
        ("reduce_scatter", r"reduce[-_]?scatter"),
        ("all_to_all", r"all[-_]?to[-_]?all|alltoall"),
        ("all_reduce", r"all[-_]?reduce"),
        ("all_gather", r"all[-_]?gather"),
        ("dispatch", r"dispatch"),
        ("combine", r"combine"),
        ("broadcast", r"broadcast|bcast"),
        ("barrier", r"barrier"),
        ("send_recv", r"send_?recv|collective-permute|\bi?(send|recv)\b|recv_?any|p2p|push(recv|send)|put_signal|Kernel_(Send|Recv)"),
        ("reduce", r"reduce"),
        ("gather", r"gather"),
        ("scatter", r"scatter"),
    )
)  # fmt: skip
_ALGORITHM = re.compile(r"(RING|TREE|NVLS(?:_TREE)?|COLLNET_(?:DIRECT|CHAIN)|PAT)_(LL128|LL|SIMPLE)", re.IGNORECASE)


@lru_cache(maxsize=1 << 16)
def communication_of(name: str) -> Communication | None:
    """What the device event called *name* communicates; None if it does not."""
    return _match(name, _DEVICE_FAMILIES)


@lru_cache(maxsize=1 << 16)
def host_communication_of(name: str) -> Communication | None:
    """What the host range called *name* communicates on its thread; None if it does not (or only issues it)."""
    return _match(name, _HOST_FAMILIES)


def operation_of(name: str) -> str:
    """The operation that a name or ``Collective name`` metadata speaks of; ``unknown`` if none."""
    return next((op for op, pattern in _OPERATIONS if pattern.search(name)), "unknown")


def _match(name: str, families: tuple[_Family, ...]) -> Communication | None:
    for family in families:
        if family.pattern.search(name):
            algorithm = _ALGORITHM.search(name)
            return Communication(
                family.name, family.op or operation_of(name), algorithm[0].upper() if algorithm else None
            )
    return None


def _class(name: str, *spellings: str) -> tuple[str, re.Pattern[str]]:
    """A rule for names in lower case: matching those is five times faster than ignoring case."""
    return name, re.compile("|".join(spellings).lower())


# The first class one of whose spellings is found in the name. Order decides where spellings meet: a fused softmax of
# an attention kernel is attention, a multi-tensor Adam is the optimizer's and not elementwise.
_CLASS_RULES = (
    _class(
        "embedding",
        "split_embedding", "embedding", "nbit_", r'\btbe_', "bounds_check_indices",
        "permute_(1d|2d)_(data|lengths)", "jagged", "segment_sum_csr",
    ),
    _class(
        "optimizer",
        "multi_tensor_apply.*(adam|sgd|lamb|lars|adagrad|rmsprop|addcdiv|addcmul|lerp|sqrt)",
        r'\b(fused_?)?adamw?(_kernel|_cuda|Functor|Math)', "adam_kernel", "distributed_adam",
        "multi_tensor_(adam|sgd|lamb|l2norm|scale|axpby)", "lamb_stage", "FusedAdam", "sgd_kernel",
        "adagrad", "L2NormFunctor", "muon", "foreach.*(adam|addcdiv)",
    ),
    _class(
        "moe",
        r'\bmoe_?(align|sum|permute|unpermute|sort|topk|gate|fused_gate|kernel_prepare)',
        "topk_?(gating|softmax|sigmoid)", "grouped_topk", "expert",
        "routing(Indices|Main|Custom|DeepSeek|Renorm)", "permute_kernel.*expert", "sort_chunks_by_idx",
        "unpermute", "_routing_", "count_and_sort", "count_expert", "_topk_forward", "_?bitmatrix",
        "_compute_expt", "expt_data", "_finalize_matmul", "moe_finalize",
    ),
    _class(
        "attention_flash",
        "flash", "fmha", "attn_fwd", "attn_bwd", "attention_?kernel(?!.*softmax)", "paged_attention",
        "_paged_", "pagedattention", r'\bmha_', "fused_multi_head", "cudnn_generated_fort_native_sdpa",
        "sdpa_sm", "mla_", "kernel_unified_attention", "batch_decode", "batchprefill", "batch_prefill",
        "aiter::.*(mha|fmha|mla)", "bwd_dq_dk_dv", "bwd_preprocess", "_fwd_kernel_stage",
        "fwd_grouped_kernel_stage", "fort_native_sdpa", "pa_(fwd|bf16|fp8)",
    ),
    _class(
        "softmax",
        "softmax(?!.*(nll|cross_entropy))",
    ),
    _class(
        "loss",
        "nll_loss", "cross_?entropy", "mse_loss", "bce", "log_softmax_nll", "kl_div", "smooth_l1",
    ),
    _class(
        "normalization",
        "layer_?norm", "rms_?norm", "batch_?norm", "batchnorm", "group_?norm", r'\bbn_(fw|bw)',
        "instance_?norm", "RowwiseMoments", "GammaBeta", "norm_fwd", "norm_bwd", "ln_(fwd|bwd)",
        "fused_add_rms", "normKernel",
    ),
    _class(
        "convolution",
        "conv(?!ert)", "implicit_gemm", "winograd", "igemm_", "miopen", "dgrad2d", "wgrad2d", "_fprop",
        "dgrad_engine", "wgrad_alg", "cudnn_infer", "fprop", "im2col", "col2im", "reduce_wgrad", "BOffsets",
        "grouped_direct", "naive_conv", "xdlops.*(fwd|bwd|wrw)",
    ),
    _class(
        "gemm",
        "gemm", "cutlass", "cublas", "nvjet", "Cijk_", "_matmul", "matmul_",
        r'\btriton_(mm|bmm|tem_fused\w*mm)', "triton_mm", "^bmm_", r'\bbmm_\w+', "splitK", "deep_gemm",
        "gemv", r'\bgemvx', r'\bdot_kernel', r's\d+gemm', r'\bxmma', "wgmma", "hgemm", "scal_kernel",
        "_w8a8", "mxfp4", "fp8_blockwise", "ck_tile.*(Gemm|gemm)", "reduce_1Block_kernel", "hipblas",
    ),
    _class(
        "pooling",
        "pool(ing)?_", "max_pool", "avg_pool", "adaptive_.*pool",
    ),
    _class(
        "sort",
        r'\bsort', "radix", "bitonic", "topk", "gatherTopK", "DeviceRadix", "segmented_sort", "mbtopk",
        "searchsorted",
    ),
    _class(
        "scan",
        "cumsum", "cumprod", "scan_", "DeviceScan", "CompactInit", "ScanTileState", "tensor_kernel_scan",
        "InitLookback", "init_lookback",
    ),
    _class(
        "random",
        "distribution_", "philox", "curand", "rand_", "dropout", "bernoulli", "multinomial", "exponential",
    ),
    _class(
        "fft",
        r'\bfft', "_fft", "regular_fft", "vkfft", "rocfft",
    ),
    _class(
        "copy",
        "CatArray", "direct_copy", "copy_kernel", "copy_device_to", "transpose", "nchwToNhwc", "nhwcToNchw",
        "convertTensor", "permute", "chunk_cat", "split_with_sizes", "reshape_and_cache", "concat",
        "memcpy", "__amd_rocclr_copy", "__amd_rocclr_fill", "tensorTransform",
        "unrolled_elementwise_kernel.*copy", "bfloat16_copy", "float8_copy", "kv_?cache", "recat_copy",
        "page_indices", "pack_", "unpack_",
    ),
    _class(
        "reduction",
        "reduce_kernel", r'reduce_\w*kernel', "DeviceReduce", "reduction", "norm_kernel", r'\bargmax',
        r'\bargmin', "sum_kernel", "lpnorm", "ReduceOp", "aminmax",
    ),
    _class(
        "embedding",
        "index_?(select|put|add|kernel|elementwise|copy|fill|FuncLarge)", "indexing_backward",
        "gather_kernel", "scatter_(add|gather)", "_scatter_gather", "vectorized_gather", "take_",
        "masked_(select|scatter)", "write_indices", "flag_kernel", "nonzero", "DeviceSelect", "SelectSweep",
        "compactExclusive",
    ),
    _class(
        "fused",
        "^triton_(poi|red|per|for|unk)_", r'^triton_\w*fused',
    ),
    _class(
        "elementwise",
        "elementwise", "vectorized_", "FillFunctor", "fill_kernel", "add_kernel", "mul_kernel", "gelu",
        "silu", "relu", "sigmoid", "tanh", "swiglu", "act_and_mul", "pow_", "where_", "clamp", "rotary",
        "rope", "cast", "bias", "multi_tensor_apply", "arange", "tril_triu", "quant(ize)?_?", "scaled_fp8",
        "masked_fill", "foreach", "pointwise", "SubTensorOp", "scalePackedTensor", "spin_kernel", "add_rms",
        "lerp",
    ),
)  # fmt: skip

_MATERIALISED_ATTENTION = re.compile(
    r"scaled_(masked|upper_triang_masked|aligned_causal)_softmax|attention.*softmax|masked_softmax"
)


@lru_cache(maxsize=1 << 16)
def kernel_class(name: str) -> str:
    """Class of the kernel called *name*, one of `tracekit.model.tables.CLASSES`; ``other`` if no rule knows it."""
    if communication_of(name) is not None:
        return "communication"
    lower = name.lower()
    if _MATERIALISED_ATTENTION.search(lower):
        return "attention"
    return next((kernel_class for kernel_class, pattern in _CLASS_RULES if pattern.search(lower)), "other")
