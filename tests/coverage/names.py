"""What the names of ``tilelang.language`` are, for those that no snippet can use: refused with a reason, or no operation at all."""

from tilelab.sim.refused import why

#: Name (or its start, ending in ``*``) → the operation that it makes, whose reason the simulator gives too.
MAKES = {
    "ptx_ldmatrix": "tl.ptx_ldmatrix", "ptx_mma": "tirx.ptx_mma", "ptx_mma_sp": "tirx.ptx_mma_sp", "ptx_mma_sm70": "tl.ptx_mma_sm70",
    "ptx_mma_block_scale": "tl.ptx_mma_block_scale", "ptx_wgmma_*": "tl.ptx_wgmma_ss", "ptx_tcgen05_*": "tl.ptx_tcgen05_mma_ss",
    "mma_fill": "tirx.mma_fill", "mma_store": "tirx.mma_store", "tvm_load_matrix_sync": "tirx.tvm_load_matrix_sync",
    "tvm_mma_sync": "tirx.tvm_mma_sync", "tvm_bmma_sync": "tirx.tvm_bmma_sync", "tvm_fill_fragment": "tirx.tvm_fill_fragment",
    "tvm_store_matrix_sync": "tirx.tvm_store_matrix_sync",
    "ptx_cp_async_bulk": "tirx.ptx_cp_async_bulk", "ptx_cp_async_barrier": "tirx.ptx_cp_async_barrier",
    "ptx_init_barrier_thread_count": "tirx.ptx_init_barrier_thread_count", "create_barriers": "tirx.create_barriers",
    "create_tma_descriptor": "tl.create_tma_descriptor", "increase_descriptor_offset": "tl.increase_descriptor_offset",
    "initialize_*": "tl.initialize_wgmma_descriptor", "tma_load": "tl.tma_load", "tma_load_2sm": "tl.tma_load",
    "call_packed*": "tirx.tvm_call_packed", "call_cpacked*": "tirx.tvm_call_packed", "tvm_call_*": "tirx.tvm_call_packed",
    "call_llvm_*": "tirx.call_llvm_intrin", "llvm_lookup_intrinsic_id": "tirx.call_llvm_intrin", "TVMBackend*": "tirx.TVMBackendAllocWorkspace",
    "anylist_*": "tirx.anylist_getitem", "tvm_stack_*": "tirx.tvm_stack_alloca", "tvm_struct_*": "tirx.tvm_struct_get",
    "tvm_throw_last_error": "tirx.tvm_throw_last_error", "lookup_param": "tirx.lookup_param", "isnullptr": "tirx.isnullptr", "ret": "tirx.ret",
    "start_profile_intrinsic": "tirx.start_profile_intrinsic", "end_profile_intrinsic": "tirx.end_profile_intrinsic", "vscale": "tirx.vscale",
    "get_active_lane_mask": "tirx.get_active_lane_mask", "tvm_tuple": "tirx.tvm_tuple", "undef": "tirx.undef",
    "handle_add_byte_offset": "tirx.handle_add_byte_offset", "q_multiply_shift_per_axis": "tirx.q_multiply_shift_per_axis",
}  # fmt: skip

_SOURCE = "it pastes source text that no simulator can know"
_SCHEDULE = "it belongs to TVM's schedules, which TileLang kernels do not use; a kernel that does is refused by name (TL703)"
_BY_HAND = "it starts threads by hand, past T.Kernel; a kernel that does is refused by name (TL703)"
_DESCRIPTOR = "it holds a descriptor of the hardware, for instructions below the meaning of tiles"
_EMITTER = "it writes tensor-core instructions by hand, below the meaning of tiles"

#: Name (or its start) → why it is refused.
REFUSED = {
    **dict.fromkeys(("import_source", "CUDASourceCodeKernel", "call_kernel"), _SOURCE),
    **dict.fromkeys(
        (
            "sblock",
            "sblock_attr",
            "init",
            "where",
            "reads",
            "writes",
            "axis",
            "CommReducer",
            "Reduce",
            "iter_var",
            "IterVar",
            "ProducerLoad",
            "block_name_suffix_context",
            "index_map",
            "buffer_decl",
        ),
        _SCHEDULE,
    ),
    **dict.fromkeys(("launch_thread", "env_thread"), _BY_HAND),
    **dict.fromkeys(("alloc_descriptor", "alloc_tcgen05_*", "alloc_wgmma_desc"), _DESCRIPTOR),
    "ptx_wait_barrier": "the front end of 0.1.15 cannot make it (it passes the wrong number of arguments)",
    "ptx_arrive_barrier_expect_tx": "the front end of 0.1.15 makes it from a barrier number, which T.alloc_barrier does not give",
    **dict.fromkeys(("*IntrinEmitter*", "compute_*", "get_ldmatrix_offset", "get_mma_micro_size", "mma_store_index_map"), _EMITTER),
    "let": "TVM's own script form; T.bind and plain Python assignment say the same",
}

_TYPE = "a class of Python that annotations and tools name"
_FORM = "a form of TVM's script that TileLang's front end does not read in a kernel"
_ASKED = "it answers a question while the kernel is being built"

#: Name → what it is, where it is no operation.
NOT_OPERATIONS = {
    **dict.fromkeys(
        (
            "Any",
            "AnyDType",
            "PrimExpr",
            "PrimFunc",
            "JITFunc",
            "Ref",
            "KernelLaunchFrame",
            "WarpSpecializeFrame",
            "WSInstr",
            "WSOpRef",
            "WSSyncKind",
            "PartialFragment",
            "SizeVar",
            "StringImm",
            "BufferLoad",
            "Call",
            "CallEffectKind",
            "BaseTileScheduler",
            "dtype",
            "TCGEN05DescriptorParams",
            "WGMMADescriptorParams",
            "meta_var",
            "Ptr",
        ),
        _TYPE,
    ),
    **dict.fromkeys(("buffer", "buffer_var", "arg", "func_name", "func_ret", "handle", "void", "var", "target"), _FORM),
    **dict.fromkeys(
        (
            "get_tvm_dtype",
            "is_float4_e2m1fn",
            "is_float4_e2m1_unpacked",
            "is_float4",
            "is_f8f6f4_family",
            "validate_gemm_ab_dtypes",
            "get_let_value",
            "has_let_value",
            "get_swizzle_layout",
        ),
        _ASKED,
    ),
}


def refused(name: str) -> str:
    """Why ``T.name`` is refused; empty if it is not."""
    operation = _look(MAKES, name)
    return why(operation) if operation else _look(REFUSED, name)


def no_operation(name: str) -> str:
    """What ``T.name`` is, where it is no operation; empty if it is one."""
    return NOT_OPERATIONS.get(name, "")


def _look(table: dict[str, str], name: str) -> str:
    if name in table:
        return table[name]
    for pattern, value in table.items():
        if (pattern.startswith("*") and pattern.strip("*") in name) or (pattern.endswith("*") and name.startswith(pattern[:-1])):
            return value
    return ""
