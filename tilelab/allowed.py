"""The closed lists of the trust boundary: what a Program from a stranger may name. Everything else is refused by name."""

from __future__ import annotations

import re

#: TVM operations with a meaning on a device: arithmetic, conversions, addresses, barriers, tensor-core instructions.
_TIRX = """
acos acosh address_of asin asinh assume atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor break_loop ceil clz
continue_loop copysign cos cosh dp4a erf exp exp10 exp2 fabs floor fma fmod handle_add_byte_offset hypot if_then_else ignore_loop_partition
isfinite
isinf isnan ldexp large_uint_imm likely log log10 log1p log2 mma_fill mma_store nearbyint nextafter popcount pow
ptx_arrive_barrier ptx_arrive_barrier_expect_tx ptx_commit_group ptx_cp_async ptx_cp_async_barrier ptx_cp_async_bulk
ptx_init_barrier_thread_count ptx_ldg32 ptx_ldmatrix ptx_mma ptx_mma_sp ptx_wait_barrier ptx_wait_group create_barriers
q_multiply_shift reinterpret round rsqrt shift_left shift_right sigmoid sin sinh sqrt tan tanh thread_return trunc
tvm_access_ptr tvm_fill_fragment tvm_load_matrix_sync tvm_mma_sync tvm_storage_sync tvm_store_matrix_sync tvm_thread_allreduce
tvm_thread_invariant tvm_tuple tvm_warp_activemask tvm_warp_shuffle tvm_warp_shuffle_down tvm_warp_shuffle_up type_annotation
undef vectorcombine vectorhigh vectorlow call_extern call_pure_extern
cuda.__activemask cuda.__shfl_sync cuda.__shfl_down_sync cuda.__shfl_up_sync
"""
_TL = """
__cos __exp __exp10 __ffs __fns __ldg __log __log10 __log2 __sin __tan abs2 access_ptr activemask add2 all_of all_sync
annotate_consumer_reg_alloc annotate_producer_reg_dealloc any_of any_sync
atomic_add_elem_op atomic_add_ret_elem_op atomic_addx2_elem_op atomic_addx2_ret_elem_op atomic_addx4_elem_op
atomic_addx4_ret_elem_op atomic_load_elem_op atomic_max_elem_op atomic_max_ret_elem_op atomic_min_elem_op
atomic_min_ret_elem_op atomic_or_elem_op atomic_store_elem_op ballot ballot_sync block_rank_in_cluster clamp
clc_get_first_ctaid_x clc_get_first_ctaid_y clc_get_first_ctaid_z clc_is_canceled clc_try_cancel clc_try_cancel_multicast
cluster_arrive cluster_arrive_relaxed cluster_sync cluster_wait conflict_hint create_tma_descriptor
create_tma_im2col_descriptor deallocate_tmem device_assert device_assert_with_msg fast_rcp fence_proxy_async fma fma2 fmul
get_lane_idx get_warp_group_idx get_warp_idx get_warp_idx_sync ieee_add ieee_fdiv ieee_fmaf ieee_frcp ieee_frsqrt ieee_fsqrt
ieee_mul ieee_sub increase_descriptor_offset infinity initialize_tcgen05_descriptor initialize_wgmma_descriptor
launch_thread_idx ldg128 ldg256 ldg32 ldg64 lds128 lds32 lds64 loop_break match_all_sync match_any_sync max2 max2_nan max_nan
mbarrier_expect_tx mbarrier_wait_parity min2 min2_nan min_nan mul2 mvb_stage_index named_barrier_arrive no_set_max_nreg
pack_b16 pack_b8x4 pdl_sync pdl_trigger pow_of_int prefetch_tma_descriptor ptx_arrive_cluster_barrier ptx_cluster_store
ptx_cp_async ptx_cp_async_barrier_noinc ptx_deallocate_tensor_memory ptx_fence_barrier_init ptx_init_tensor_memory
ptx_ldmatrix ptx_mma_block_scale ptx_mma_sm70 ptx_st_bulk_shared ptx_stmatrix ptx_tcgen05_cp_warpx4
ptx_tcgen05_mma_blockscaled_ss ptx_tcgen05_mma_ss ptx_tcgen05_mma_ts ptx_tcgen05_sf_warp_transpose ptx_wgmma_rs
ptx_wgmma_sp_rs ptx_wgmma_sp_ss ptx_wgmma_ss reducer_update region rng_init rng_rand rng_rand_float
round_ties_away_from_zero set_max_nreg shfl_down_sync shfl_sync shfl_up_sync shfl_xor_sync stg128 stg256 stg32 stg64 sts128
sts32 sts64 sub2 sync_grid sync_warp syncthreads_and syncthreads_count syncthreads_or tcgen05_after_thread_sync
tcgen05_before_thread_sync tcgen05_ld tcgen05_mma_arrive tcgen05_st tl_shuffle_elect tma_load tma_load_gather4
tma_load_im2col tma_load_multicast tma_store tma_store_arrive tma_store_cluster tma_store_scatter4 tma_store_wait
tvm_mfma tvm_mfma_store tvm_rdna_wmma tvm_rdna_wmma_store ds_read_tr16_b64 ds_read_tr8_b64 wait_wgmma warp_reduce_bitand
warp_reduce_bitor warp_reduce_max warp_reduce_min warp_reduce_sum warpgroup_arrive warpgroup_commit_batch
warpgroup_fence_operand warpgroup_wait
"""
OPS = frozenset({*(f"tirx.{n}" for n in _TIRX.split()), *(f"tl.{n}" for n in _TL.split())})

#: Operations whose first argument names a function that is pasted into the generated source.
EXTERN_OPS = frozenset({"tirx.call_extern", "tirx.call_pure_extern"})
EXTERNS = frozenset({"debug_print_var", "debug_print_msg", "debug_print_buffer_value", "DP4A"})
#: What lowering itself adds: functions of TileLang's own templates.
LOWERED_EXTERN = re.compile(
    r"(?:tl::|__)[A-Za-z_][\w:<>, ]{0,200}|cutlass::[\w:]{1,100}|AtomicAdd\w*|AtomicMax\w*|AtomicMin\w*|AtomicLoad|AtomicStore"
)

SCOPES = frozenset(
    {
        "global", "shared", "shared.dyn", "shared.barrier", "shared.cluster_barrier", "shared.tmem", "local", "local.fragment", "local.var",
        "local.reducer", "local.descriptor.wgmma", "local.descriptor.tcgen05_smem", "local.descriptor.tcgen05_instr", "local.descriptor",
        "", "constant", "param", "grid_constant",
    }
)  # fmt: skip

_DTYPES = """
bool int4 int8 int16 int32 int64 uint1 uint2 uint4 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16
float8_e4m3fn float8_e4m3 float8_e4m3fnuz float8_e4m3b11fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu float8_e3m4
float6_e2m3fn float6_e3m2fn float4_e2m1fn float4_e2m1_unpacked tfloat32 custom[tfloat32] custom[float4_e2m1_unpacked] handle
void custom[float4_e2m1_unpacked]8
"""
BASE_DTYPES = frozenset(_DTYPES.split())
_DTYPE = re.compile(r"(.+?)(?:x(\d{1,4}))?")


def is_dtype(text: object) -> bool:
    """Tell whether ``text`` is a dtype that a Program may hold, with lanes as in ``float16x8``."""
    if not isinstance(text, str):
        return False
    if text in BASE_DTYPES:
        return True
    match = _DTYPE.fullmatch(text)
    return bool(match and match[1] in BASE_DTYPES and match[2] and 0 < int(match[2]) <= 4096)


#: Attribute keys by where they stand.
FOR_ATTRS = frozenset(
    {
        "num_stages", "tl_pipeline_order", "tl_pipeline_stage", "tl_pipelined_num_stages", "coalesced_width", "parallel_loop_layout",
        "parallel_loop_predicate", "parallel_prefer_async", "parallel_async_without_async_commit_wait", "pragma_unroll_explicit",
        "pragma_unroll_factor", "tl.ws_op_id", "thread", "software_pipeline_stage", "software_pipeline_order",
        "software_pipeline_async_stages", "disable_loop_unswitching", "tl.parallel_multiplicity",
    }
)  # fmt: skip
BLOCK_ATTRS = frozenset(
    {
        "layout_map", "safe_value_map", "l2_hit_ratio_map", "tl.non_restrict_params", "barrier_init", "reducer_info", "reducer_info_v2",
        "tl.ws_schedule", "tl.local_var_init", "use_2cta", "tl.smem_alignment_map",
    }
)  # fmt: skip
LAUNCH_ATTRS = frozenset({"threads_defaulted", "cluster_dims", "kernel", "smem_bytes", "params"})
TILE_ATTRS = frozenset(
    {
        "coalesced_width", "parallel_loop_layout", "disable_tma", "eviction_policy", "prefer_instruction", "barrier", "cluster_mask",
        "dst_block", "leader_scope_threads", "is_gather4", "is_scatter4", "gather4_rows", "gather4_col", "k_pack", "wg_wait", "is_tcgen05",
        "use_2cta", "sf_a_granularity_k", "sf_b_granularity_k", "sf_layout", "batch", "nan_propagate", "use_tma", "memory_order",
        "tl.ws_op_id", "round", "sat", "rbits", "warp_reduce", "enable_fadd2",
    }
)  # fmt: skip
ATTRIBUTE_KEYS = frozenset(
    {
        "threadblock_swizzle_pattern", "tl.min_blocks_per_sm", "tl.ws_pipeline_depth", "tl.ws_op_id", "warp_specialize", "tl.assume",
        "lexical_alloc_scope", "storage_alignment", "thread_extent", "kWarpSpecializationScope", "pragma_unroll_explicit",
        "pragma_unroll_factor", "async_scope", "async_commit_queue_scope", "async_wait_queue_scope", "async_wait_inflight_count",
        "volatile_scope", "storage_scope", "reduce_scope", "warp_specialization_scope", "custom_warp_specialization", "tirx.assume",
    }
)  # fmt: skip
PROGRAM_ATTRS = frozenset(
    {"tilelang_pass_configs", "tilelang_compile_flags", "tirx.noalias", "tir.noalias", "target", "tirx.is_global_func", "kernels"}
)

#: Pass configuration that changes code, and touches no file.
PASS_CONFIGS = frozenset(
    {
        "tl.Simplify", "tl.disable_buffer_init_check", "tl.disable_data_race_check", "tl.disable_warp_specialized",
        "tl.enable_auto_schedule", "tl.enable_auto_warp_specialization", "tl.enable_fast_math", "tl.ptxas_register_usage_level",
        "tl.config_index_bitwidth", "tl.layout_cost_model", "tl.reducer_force_baseline", "tl.disable_tma_lower",
        "tl.disable_safe_memory_legalize", "tl.disable_vectorize_256", "tl.enable_fp32x2_reduction", "tl.enable_async_copy",
        "tl.enable_lower_ldgstg", "tl.enable_lower_ldgstg_predicated", "tl.disable_wgmma", "tl.enable_aggressive_shared_memory_merge",
        "tl.disable_shared_memory_reuse", "tl.disable_shuffle_elect", "tl.disable_loop_unswitching",
        "tl.loop_unswitching_allow_non_trivial_else", "tl.if_stmt_binding_inline_replayable_binds", "tl.disable_thread_storage_sync",
        "tl.force_let_inline", "tl.storage_rewrite_detect_inplace", "tir.enable_equiv_terms_in_cse_tir", "tirx.disable_cse_tir",
        "tirx.disable_storage_rewrite", "tirx.disable_vectorize", "tirx.use_async_copy", "tirx.merge_static_smem", "tirx.noalias",
        "tl.disable_out_of_bound_warning",
    }
)  # fmt: skip
COMPILE_FLAG = re.compile(
    r"-{1,2}use_fast_math|-O[0-3]|-{1,2}maxrregcount[= ]?\d{1,3}|-lineinfo|-{1,2}fmad=(?:true|false)|-{1,2}ftz=(?:true|false)"
)

#: Names are pasted into generated source; so are strings, between quotes.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:]{0,255}")
BAD_TEXT = re.compile(r'["\\\x00-\x08\x0b-\x1f\x7f]')
