"""The grammar and the trust boundary: each rule refuses what it is there for, by name and place."""

from dataclasses import replace

import pytest

from tilelab import allowed, ir
from tilelab.errors import VerifyError
from tilelab.verify import verify

INT = "int32"


def const(v, dtype=INT):
    return ir.Const(dtype=dtype, value=v)


class Maker:
    """Builds a kernel around some statements: one global buffer A of 8 floats, a shared buffer s, the thread tx."""

    def __init__(self):
        self.data = ir.Var(dtype="handle", name="A", pointee="float32", scope="global")
        self.A = ir.Buffer(name="A", dtype="float32", shape=(const(8),), scope="global", data=self.data)
        self.s_data = ir.Var(dtype="handle", name="s", pointee="float32", scope="shared.dyn")
        self.s = ir.Buffer(name="s", dtype="float32", shape=(const(8),), scope="shared.dyn", data=self.s_data)
        self.tx = ir.Var(dtype=INT, name="tx")
        self.loc = ir.SourceLoc(file="k.py", line=7)

    def program(self, *body, **kw):
        block = ir.Block(name="root", body=body, allocs=(self.s,), attrs=kw.pop("block_attrs", {}))
        launch = ir.Launch(
            block_vars=(ir.Var(dtype=INT, name="bx"),), grid=(const(1),), thread_vars=(self.tx,), threads=(const(32),), body=(block,),
            attrs=kw.pop("launch_attrs", {}),
        )  # fmt: skip
        handle = ir.Var(dtype="handle", name="A_handle")
        host = kw.pop("host", ())
        return ir.Program(name="k", level="tile", params=(ir.Param(name="A", var=handle, buffer=self.A),), body=(*host, launch), **kw)

    def store(self, value, **kw):
        return ir.Store(buffer=self.A, indices=(self.tx,), value=value, loc=self.loc, **kw)

    def call(self, op, *args, dtype="float32", **attrs):
        return ir.Call(dtype=dtype, op=op, args=args, attrs=attrs)


@pytest.fixture
def m():
    return Maker()


def test_a_good_program_passes(m):
    p = m.program(m.store(m.call("tirx.exp", const(1.0, "float32"))))
    assert verify(p) is p


def says(program, *parts, closed=True):
    with pytest.raises(VerifyError) as caught:
        verify(program, closed=closed)
    for part in parts:
        assert part in caught.value.message
    return caught.value


def test_the_place_is_named(m):
    error = says(m.program(m.store(m.call("tirx.tvm_call_packed", ir.Str(dtype="handle", value="os.system")))), "k.py:7", "tvm_call_packed")
    assert error.loc.line == 7
    assert "tvm_call_packed" in error.what


@pytest.mark.parametrize(
    "op",
    ["tirx.tvm_call_packed", "tirx.tvm_call_cpacked", "tirx.call_llvm_intrin", "tirx.TVMBackendAllocWorkspace", "tirx.tvm_struct_set",
     "tl.tvm_ffi_call_with_result", "tl.ascend_copy_gm_to_ubuf", "tirx.nd_mem_alloc_with_scope", "made.up"],
)  # fmt: skip
def test_operations_outside_the_list_are_refused(m, op):
    p = m.program(m.store(m.call(op)))
    says(p, f"the operation '{op}'")
    assert verify(p, closed=False)


def test_extern_functions_are_listed(m):
    def extern(name):
        return m.program(ir.Eval(value=m.call("tirx.call_extern", ir.Str(dtype="handle", value=name), dtype="handle")))

    assert verify(extern("debug_print_msg"))
    says(extern("system"), "the extern function 'system'")
    says(extern("tl::AllReduce<tl::SumOp, 32, 1, 0>::run"), "the extern function")
    lowered = replace(extern("tl::AllReduce<tl::SumOp, 32, 1, 0>::run"), level="thread")
    assert verify(lowered)
    says(replace(extern('x"); evil("'), level="thread"), "extern function")
    says(m.program(ir.Eval(value=m.call("tirx.call_extern", m.tx))), "names no function")


def test_strings_and_names_cannot_break_out_of_the_source(m):
    text = ir.Str(dtype="handle", value='a"); system("x')
    says(m.program(ir.Eval(value=m.call("tl.device_assert_with_msg", const(True, "bool"), text))), "quote")
    bad = ir.Var(dtype=INT, name="x; evil()")
    says(m.program(ir.Bind(var=bad, value=const(1))), "the name 'x; evil()'")
    says(replace(m.program(), name="k(){}"), "the name 'k(){}' of the program")


@pytest.mark.parametrize("key", ["pragma_import_c", "code_block_source", "anything"])
def test_attributes_are_listed(m, key):
    says(m.program(block_attrs={key: "x"}), f"block annotation '{key}'")
    says(m.program(launch_attrs={key: "x"}), f"launch annotation '{key}'")
    loop = ir.For(var=ir.Var(dtype=INT, name="i"), min=const(0), extent=const(1), kind="serial", body=(), attrs={key: 1})
    says(m.program(loop), f"loop annotation '{key}'")
    says(m.program(ir.Attribute(key=key, target=None, value=const(1), body=())), f"attribute '{key}'")
    says(m.program(attrs={key: 1}), f"program '{key}'")


def test_compiler_flags_and_pass_configuration_are_listed(m):
    ok = {"tilelang_compile_flags": ("--use_fast_math", "-O3"), "tilelang_pass_configs": ir.AttrMap(items=(("tl.disable_warp_specialized", True),))}
    assert verify(m.program(attrs=ok))
    says(m.program(attrs={"tilelang_compile_flags": ("-include/etc/passwd",)}), "compiler flag '-include/etc/passwd'")
    says(m.program(attrs={"tilelang_pass_configs": ir.AttrMap(items=(("tl.dump_ir_path", "/tmp"),))}), "pass configuration 'tl.dump_ir_path'")


def test_host_statements_are_few(m):
    evil = ir.Eval(value=m.call("tirx.exp", const(1.0, "float32")), loc=m.loc)
    says(m.program(host=(evil,)), "the statement Eval outside T.Kernel")
    says(m.program(host=(ir.Store(buffer=m.A, indices=(const(0),), value=const(1.0, "float32")),)), "Store outside T.Kernel")
    assume = ir.Eval(value=m.call("tirx.assume", const(True, "bool"), dtype="bool"))
    assert verify(m.program(host=(assume,)))


def test_scopes_and_dtypes_are_listed(m):
    says(m.program(ir.Alloc(buffer=replace(m.s, scope="texture", data=ir.Var(dtype="handle", name="t")))), "scope 'texture'")
    says(m.program(m.store(ir.Const(dtype="float33", value=1.0))), "dtype 'float33'")
    assert allowed.is_dtype("float16x8")
    assert not allowed.is_dtype("float16x0")
    assert not allowed.is_dtype("float16x")
    assert not allowed.is_dtype(3)


def test_variables_are_bound_before_use(m):
    says(m.program(m.store(ir.Cast(dtype="float32", a=ir.Var(dtype=INT, name="loose")))), "the variable 'loose' where it has no value")
    i = ir.Var(dtype=INT, name="i")
    loop = ir.For(var=i, min=const(0), extent=const(2), kind="serial", body=(m.store(ir.Cast(dtype="float32", a=i)),))
    assert verify(m.program(loop))
    says(m.program(loop, m.store(ir.Cast(dtype="float32", a=i))), "the variable 'i' where it has no value")
    other = replace(m.s, data=ir.Var(dtype="handle", name="nowhere"))
    says(m.program(ir.Store(buffer=other, indices=(const(0),), value=const(1.0, "float32"))), "where it has no storage")


def test_shapes_and_operators_fit_the_grammar(m):
    says(m.program(ir.Store(buffer=m.A, indices=(), value=const(1.0, "float32"))), "0 indices into A, which has 1 dimensions")
    one = const(1)
    says(m.program(m.store(ir.Bin(dtype=INT, op="xor", a=one, b=one))), "the operator 'xor'")
    says(m.program(m.store(ir.Bin(dtype=INT, op="lt", a=one, b=one))), "comparison lt of dtype int32")
    says(m.program(ir.Tile(op="copy", args=(one,))), "copy with 1 arguments instead of 2")
    says(m.program(ir.Tile(op="teleport", args=())), "the tile operation 'teleport'")
    says(m.program(ir.For(var=m.tx, min=one, extent=one, kind="sideways", body=())), "a loop of kind 'sideways'")
    says(m.program(m.store(ir.Const(dtype="int32", value="3"))), "the constant 3 of dtype int32")
    says(m.program(m.store(ir.Const(dtype="int32", value=True))), "of dtype int32")
    says(m.program(m.store("text")), "an expression of type str")
    says(m.program("text"), "a statement of type str")
    says(m.program(outputs=(3,)), "outputs (3,)")
    inner = m.program().body[0]
    says(m.program(inner), "a kernel launched inside a kernel")


def test_depth_and_size_are_bounded(m):
    e = const(1)
    for _ in range(5000):
        e = ir.Not(dtype="bool", a=e)
    says(m.program(m.store(e)), "nested deeper")
    body = ()
    for _ in range(500):
        body = (ir.While(cond=const(False, "bool"), body=body),)
    says(m.program(*body), "nested deeper")
    e = const(1)
    for _ in range(64):  # a chain of shared parts stands for 2^64 nodes, and is checked in no time
        e = ir.Bin(dtype=INT, op="add", a=e, b=e)
    assert verify(m.program(m.store(e)))


def test_what_is_shared_is_checked_in_each_scope(m):
    i = ir.Var(dtype=INT, name="i")
    shared = ir.Cast(dtype="float32", a=i)
    loop = ir.For(var=i, min=const(0), extent=const(2), kind="serial", body=(m.store(shared), m.store(shared)))
    assert verify(m.program(loop))
    says(m.program(loop, m.store(shared)), "the variable 'i'")


def test_the_number_of_nodes_is_bounded(m, monkeypatch):
    monkeypatch.setattr("tilelab.verify.MAX_NODES", 50)
    says(m.program(*(m.store(const(1.0, "float32")) for _ in range(50))), "more than 50 nodes")


def test_the_open_check_still_holds_the_grammar(m):
    says(m.program(ir.Tile(op="teleport", args=())), "teleport", closed=False)
    says(m.program(m.store(ir.Cast(dtype="float32", a=ir.Var(dtype=INT, name="loose")))), "loose", closed=False)
