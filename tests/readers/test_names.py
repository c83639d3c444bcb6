"""What names stand for: each communication family, and the compute kernels that look like them."""

from __future__ import annotations

import pytest

from tracekit.model.tables import CLASSES
from tracekit.readers.names import communication_of, host_communication_of, kernel_class, operation_of


@pytest.mark.parametrize(
    ("name", "family", "op", "algorithm"),
    [
        ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", "nccl", "all_reduce", "RING_LL"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "nccl", "send_recv", "RING_SIMPLE"),
        ("ncclKernel_AllToAll_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "nccl", "all_to_all", "RING_SIMPLE"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "nccl", "all_reduce", "RING_LL"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL128(ncclDevKernelArgsStorage<4096ul>)", "nccl", "reduce_scatter", "RING_LL128"),
        ("ncclDevKernel_AllGather_RING_LL(ncclDevComm*, unsigned long, ncclWork*)", "nccl", "all_gather", "RING_LL"),
        ("ncclDevKernel_Broadcast_RING_LL(ncclDevComm*, unsigned long, ncclWork*)", "nccl", "broadcast", "RING_LL"),
        ("ncclDevKernel_AllReduce_Sum_bf16_TREE_LL(ncclDevKernelArgsStorage<4096ul>)", "nccl", "all_reduce", "TREE_LL"),
        ("ncclDevKernel_AllReduce_Sum_f32_NVLS_SIMPLE", "nccl", "all_reduce", "NVLS_SIMPLE"),
        ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "nccl", "unknown", None),
        ("ncclDevKernel_Generic_4(ncclDevComm*, channelMasks, ncclWork*)", "nccl", "unknown", None),
        ("ncclSymkDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymkDevWorkArgs)", "nccl", "all_reduce", None),
        ("ncclSymDevKernel_AllGather_LL(ncclSymDevArgs)", "nccl", "all_gather", None),
        ("mscclKernel_Sum_half_Simple_false", "msccl", "unknown", None),
        ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)", "symmetric_memory", "all_reduce", None),
        ("void (anonymous namespace)::one_shot_all_reduce_kernel<float, 16, 8>", "symmetric_memory", "all_reduce", None),
        ("void two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 8>", "symmetric_memory", "all_reduce", None),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)", "custom_all_reduce", "all_reduce", None),
        ("void sglang::cross_device_reduce_2stage<half, 8>", "custom_all_reduce", "all_reduce", None),
        ("void tensorrt_llm::kernels::oneShotAllReduceKernel<half, 8>", "custom_all_reduce", "all_reduce", None),
        ("void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<2>", "custom_all_reduce", "all_reduce", None),
        ("void deep_ep::internode_ll::dispatch<false, 3, 10, 7168>(void*, float*)", "deep_ep", "dispatch", None),
        ("void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(__nv_bfloat16*)", "deep_ep", "combine", None),
        ("void my_fork::internode::cached_notify_combine<true>", "deep_ep", "combine", None),
        ("void deep_ep::intranode::notify_dispatch<8>(int const*)", "deep_ep", "dispatch", None),
        ("nvshmemi_transfer_put_signal(void*, void*)", "nvshmem", "send_recv", None),
        ("void nvshmemi_proxy_put<...>", "nvshmem", "unknown", None),
        ("void userbuffers_fp16_sum_inplace_gpu_rr_rs<8>(int, int)", "userbuffers", "unknown", None),
        ("kuserbuffers_pushrecv(int, int, int*)", "userbuffers", "send_recv", None),
        ("all-reduce.12", "xla", "all_reduce", None),
        ("all-gather-start.3", "xla", "all_gather", None),
        ("reduce-scatter.1", "xla", "reduce_scatter", None),
        ("collective-permute-done.7", "xla", "send_recv", None),
        ("all-to-all.2", "xla", "all_to_all", None),
        ("hcom_allReduce__123_0", "hccl", "all_reduce", None),
        ("HcclAllGather", "hccl", "all_gather", None),
        ("oneapi::ccl::allreduce_kernel", "oneccl", "all_reduce", None),
    ],
)  # fmt: skip
def test_communication_families(name: str, family: str, op: str, algorithm: str | None) -> None:
    found = communication_of(name)
    assert found is not None
    assert (found.family, found.op, found.algorithm) == (family, op, algorithm)
    assert kernel_class(name) == "communication"


@pytest.mark.parametrize(
    "name",
    [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>",
        "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>",
        "void vllm::moe::moe_align_block_size_kernel<int>",
        "void permute_kernel<c10::BFloat16>",
        "combine_splits_kernel",
        "Dispatch Kernel",
        "_combined_routing_compute",
        "hipLaunchKernel",
        "void deep_ep::layout::get_dispatch_layout<256, 4, 8>",
        "triton_red_fused_all_reduce_scatter_like_name_0",
        "reduce.12",
        "gather.3",
        "broadcast.9",
        "void at::native::(anonymous namespace)::broadcast_kernel",
        "flash::flash_fwd_splitkv_combine_kernel",
    ],
)
def test_compute_that_only_sounds_like_it(name: str) -> None:
    assert communication_of(name) is None


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("gloo:all_reduce", "all_reduce"),
        ("gloo:all_gather", "all_gather"),
        ("gloo:send", "send_recv"),
        ("mpi:alltoall", "all_to_all"),
    ],
)
def test_backends_on_host_threads(name: str, op: str) -> None:
    found = host_communication_of(name)
    assert found is not None
    assert found.op == op


@pytest.mark.parametrize(
    "name",
    ["c10d::allreduce_", "record_param_comms", "nccl:all_reduce", "aten::add", "DistributedDataParallel.forward"],
)
def test_what_only_hands_communication_over_is_none_on_the_host(name: str) -> None:
    assert host_communication_of(name) is None


@pytest.mark.parametrize(
    ("metadata", "op"),
    [
        ("allreduce", "all_reduce"),
        ("allreduce_coalesced", "all_reduce"),
        ("_allgather_base", "all_gather"),
        ("allgather_into_tensor_coalesced", "all_gather"),
        ("_reduce_scatter_base", "reduce_scatter"),
        ("reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("alltoall_base", "all_to_all"),
        ("broadcast", "broadcast"),
        ("send", "send_recv"),
        ("recv", "send_recv"),
        ("recvAnySource", "send_recv"),
        ("barrier", "barrier"),
        ("reduce", "reduce"),
        ("gather", "gather"),
        ("scatter", "scatter"),
        ("wait", "unknown"),
    ],
)
def test_operations_of_metadata(metadata: str, op: str) -> None:
    assert operation_of(metadata) == op


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn", "gemm"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "gemm"),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT", "gemm"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64", "gemm"),
        ("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>", "gemm"),
        ("triton_mm_12", "gemm"),
        ("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", "attention_flash"),
        ("fmha_cutlassB_bf16_aligned_64x64_k64_sm80", "attention_flash"),
        ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma", "attention_flash"),
        ("attn_fwd", "attention_flash"),
        ("void scaled_upper_triang_masked_softmax_warp_forward<c10::BFloat16>", "attention"),
        ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 7>", "softmax"),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>", "normalization"),
        ("void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512>", "normalization"),
        ("void vllm::rms_norm_kernel<c10::BFloat16>", "normalization"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>", "elementwise"),
        ("void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float>>", "reduction"),
        ("void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_warp_per_row_1", "embedding"),
        (
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor<float, 4>>",
            "optimizer",
        ),
        ("adam_kernel", "optimizer"),
        ("void cudnn::cnn::conv2d_grouped_direct_kernel<false>", "convolution"),
        ("cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688fprop_optimized_tf32_128x128>", "convolution"),
        ("void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>", "pooling"),
        ("void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float>", "loss"),
        ("void vllm::moe::moe_align_block_size_kernel<int>", "moe"),
        ("void at::native::radixSortKVInPlace<2, -1, 32, 32>", "sort"),
        ("void cub::DeviceScanKernel<cub::DeviceScanPolicy<long>>", "scan"),
        ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float>", "copy"),
        ("triton_poi_fused_add_cos_sin_0", "fused"),
        ("a_kernel_of_tomorrow", "other"),
    ],
)
def test_kernel_classes(name: str, expected: str) -> None:
    assert expected in CLASSES
    assert kernel_class(name) == expected
