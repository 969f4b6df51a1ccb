"""What the tile level does not simulate, and why: said to the user by name, and checked against TileLang's own list of operations."""

from __future__ import annotations

_INSTRUCTION = "it is one instruction of the hardware, below the meaning of tiles"
_VENDOR = "it belongs to another vendor's hardware"
_TENSOR_MEMORY = "it moves data by the layout of Blackwell's tensor memory, which tiles do not have"
_RUNTIME = "it belongs to TVM's runtime on the host"
_MADE = "it has no meaning of its own: it stands inside other operations, or TVM's passes make it"
_INSIDE = "TileLang makes it inside its own passes"

#: Operation, or the start of its name (ending in ``*``) → why it is refused.
REFUSED: dict[str, str] = {
    **dict.fromkeys(
        ("tl.ascend_*", "tl.tileop.ascend_*", "tl.simd.*", "tl.cooperative_tensor_*", "tl.ds_read_*", "tl.tvm_rdna_*", "tl.tvm_mfma*"),
        _VENDOR,
    ),
    **dict.fromkeys(
        (
            "tl.ptx_wgmma_*", "tl.ptx_mma_*", "tl.ptx_ldmatrix", "tl.ptx_stmatrix", "tl.ptx_st_bulk_shared",
            "tl.initialize_wgmma_descriptor", "tl.initialize_tcgen05_descriptor", "tl.increase_descriptor_offset", "tl.create_tma_*",
            "tl.prefetch_tma_descriptor", "tl.tma_load*", "tl.tma_store*",
        ),
        _INSTRUCTION,
    ),
    **dict.fromkeys(
        (
            "tl.ptx_tcgen05_mma*", "tl.tcgen05_*", "tl.ptx_init_tensor_memory", "tl.ptx_deallocate_tensor_memory",
        ),
        _TENSOR_MEMORY,
    ),
    **dict.fromkeys(
        (
            "tl.launch_thread_idx", "tl.mvb_stage_index", "tl.conflict_hint", "tl.region", "tl.access_ptr", "tl.GemmWarpPolicy",
            "tl.ptx_cluster_store",
        ),
        _INSIDE,
    ),
    "tl.tvm_ffi_call_with_result": _RUNTIME,
    **dict.fromkeys(
        (
            "tirx.TVMBackend*", "tirx.anylist_*", "tirx.tvm_call_*", "tirx.tvm_context_id", "tirx.tvm_stack_*", "tirx.tvm_static_handle",
            "tirx.tvm_struct_*", "tirx.tvm_throw_last_error", "tirx.nd_mem_alloc_with_scope", "tirx.lookup_param", "tirx.isnullptr",
            "tirx.start_profile_intrinsic", "tirx.end_profile_intrinsic", "tirx.dma_*", "tirx.ret",
        ),
        _RUNTIME,
    ),
    **dict.fromkeys(
        (
            "tirx.ptx_ldmatrix", "tirx.ptx_mma*", "tirx.mma_fill", "tirx.mma_store", "tirx.ptx_cp_async*", "tirx.ptx_ldg32",
            "tirx.ptx_init_barrier_thread_count", "tirx.create_barriers", "tirx.tvm_bmma_sync", "tirx.tvm_fill_fragment",
            "tirx.tvm_load_matrix_sync", "tirx.tvm_mma_sync", "tirx.tvm_store_matrix_sync",
        ),
        _INSTRUCTION,
    ),
    **dict.fromkeys(
        (
            "tirx.hip.*", "tirx.metal.*", "tirx.webgpu.*", "tirx.simdgroup_*", "tirx.make_filled_simdgroup_matrix", "tirx.texture2d_*",
            "tirx.call_spirv_pure_glsl450", "tirx.call_llvm_*", "tirx.vscale", "tirx.get_active_lane_mask",
        ),
        _VENDOR,
    ),
    **dict.fromkeys(
        (
            "tirx.address_of", "tirx.tvm_access_ptr", "tirx.handle_add_byte_offset", "tirx.type_annotation", "tirx.tvm_tuple",
            "tirx.undef", "tirx.prefetch", "tirx.q_multiply_shift_per_axis",
            "tirx.cuda.*", "tirx.dp4a", "tirx.atomic_add",
        ),
        _MADE,
    ),
}  # fmt: skip


def why(op: str) -> str:
    """Why ``op`` is refused; empty if nothing is known about it."""
    if op in REFUSED:
        return REFUSED[op]
    for name, reason in REFUSED.items():
        if name.endswith("*") and op.startswith(name[:-1]):
            return reason
    return ""


def told(op: str) -> str:
    """``op`` with the reason, for a message."""
    reason = why(op)
    return f"{op} ({reason})" if reason else op
