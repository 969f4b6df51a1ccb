"""lower: layouts, device program, shared memory, passes, pipelines, refusals, cache."""

import json
import subprocess
import sys

import numpy as np
import pytest
import tilelang
import tilelang.language as T
from cases import cases

import tilelab
from tilelab import ir, serde
from tilelab.compiler import cache
from tilelab.compiler.blame import share_located
from tilelab.compiler.lowering import infer_layouts
from tilelab.errors import InputError
from tilelab.finding import KernelRefused
from tilelab.verify import verify


def line_of(text):
    return next(i for i, s in enumerate(open(__file__), 1) if text in s and "line_of" not in s)


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILELAB_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def case(name):
    return next(c for c in cases() if c.name == name)


def lowered(name, target="sm_80", **kw):
    c = case(name)
    return tilelab.lower(c.load(), target=target, consts=c.consts, **kw)


def test_a_gemm_for_sm_80():
    a = lowered("gemm")
    assert a.target == "sm_80"
    assert '__global__ void __launch_bounds__(128, 1) gemm_kernel' in a.source
    c = a.layouts["c"]
    assert (c.kind, c.shape, c.threads, c.scope) == ("fragment", (64, 64), 128, "local.fragment")
    owners, registers = c.threads_of()[..., 0], c.registers()[..., 0]
    assert len({(t, r) for t, r in zip(owners.flat, registers.flat, strict=True)}) == 64 * 64  # one place for each element
    assert set(owners.flat) == set(range(128))
    assert registers.max() == 64 * 64 // 128 - 1
    s = a.layouts["a"]
    assert (s.kind, s.shape, s.offset_bytes) == ("shared", (2, 64, 32), 0)  # two versions, for two stages
    assert sorted(s.addresses().flat) == list(range(2 * 64 * 32))  # a swizzle moves, and loses nothing
    assert (np.diff(s.addresses()[0, 2]) != 1).any()
    assert [(x.name, x.offset_bytes, x.size_bytes) for x in a.smem] == [("a", 0, 8192), ("b", 8192, 8192)]
    r = a.resources["gemm_kernel"]
    assert (r.threads, r.smem_bytes, r.registers) == (128, 16384, None)
    (plan,) = a.pipelines
    assert (plan.loop, plan.num_stages, plan.stage, plan.order, plan.async_stages) == ("k", 2, (0, 0, 1), (0, 1, 2), (0,))
    assert plan.statements == ("copy", "copy", "gemm")
    names = [p.name for p in a.passes]
    assert names.index("tl.LayoutInference") < names.index("tl.LowerTileOp")
    assert next(p for p in a.passes if p.name == "tl.LowerTileOp").changed
    assert all(p.seconds >= 0 for p in a.passes)
    assert not any(p.after for p in a.passes)


def test_the_device_program_says_what_the_hardware_is_told():
    a = lowered("gemm")
    assert a.program.level == "thread"
    assert [p.name for p in a.program.params] == ["A", "B", "C"]
    launch = next(s for s in ir.walk(a.program) if isinstance(s, ir.Launch))
    assert launch.attrs["kernel"] == "gemm_kernel"
    assert launch.attrs["smem_bytes"] == 16384
    assert [e.value for e in launch.grid] == [2, 2]
    assert [e.value for e in launch.threads] == [128, 1, 1]
    ops = {e.op for e in ir.walk(a.program) if isinstance(e, ir.Call)}
    assert {"tl.ptx_cp_async", "tl.ptx_ldmatrix", "tirx.ptx_mma", "tirx.ptx_commit_group", "tirx.ptx_wait_group"} <= ops
    assert verify(a.program) is a.program
    assert a.program.params[0].buffer.data is a.program.params[0].var


def test_a_gemm_for_sm_90_is_warp_specialised():
    a = lowered("gemm", "sm_90")
    assert a.target == "sm_90a"
    assert a.attrs["warp_specialized"] == "true"
    assert a.resources["gemm_kernel"].threads == 256
    ops = {e.op for e in ir.walk(a.program) if isinstance(e, ir.Call)}
    assert {"tl.tma_load", "tl.mbarrier_wait_parity", "tl.ptx_wgmma_ss", "tl.create_tma_descriptor"} <= ops
    made = [s for s in a.program.body if isinstance(s, ir.Bind) and s.value.op == "tl.create_tma_descriptor"]
    loads = [e.args[0] for e in ir.walk(a.program) if isinstance(e, ir.Call) and e.op == "tl.tma_load"]
    assert {s.var for s in made} == set(loads)
    assert {s.value.args[2] for s in made} == {p.var for p in a.program.params[:2]}
    assert a.layouts["c"].threads_of().min() == 128  # the consumers are the second warpgroup
    assert verify(a.program)


def lines_of(program, op):
    text = next(iter(program.sources.values())).splitlines()
    found = [s.loc for s in ir.walk(program) if isinstance(s, ir.Eval) and isinstance(s.value, ir.Call) and s.value.op == op]
    return {text[loc.line - 1].strip() for loc in found}


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_lowered_statements_name_the_users_lines(target):
    a = lowered("gemm", target)
    assert share_located(a.program) == 1.0
    copies = {"T.copy(A[by * block_M, k * block_K], a)", "T.copy(B[k * block_K, bx * block_N], b)"}
    product = {"T.gemm(a, b, c)"}
    if target == "sm_80":
        assert lines_of(a.program, "tl.ptx_cp_async") == copies
        assert lines_of(a.program, "tl.ptx_ldmatrix") == product
        assert lines_of(a.program, "tirx.ptx_mma") == product
    else:
        assert lines_of(a.program, "tl.tma_load") == copies
        assert lines_of(a.program, "tl.ptx_wgmma_ss") == product
        assert lines_of(a.program, "tl.warpgroup_commit_batch") == product
        assert {x.split("(")[0] for x in lines_of(a.program, "tirx.ptx_init_barrier_thread_count")} == {"with T.Kernel"}
    stores = {s.loc.line for s in ir.walk(a.program) if isinstance(s, ir.Store) and s.buffer.name == "C"}
    text = next(iter(a.program.sources.values())).splitlines()
    assert {text[n - 1].strip() for n in stores} == {"T.copy(c, C[by * block_M, bx * block_N])"}


def test_several_kernels_share_a_workspace():
    a = lowered("two_launches")
    assert list(a.resources) == ["two_launches_kernel", "two_launches_kernel_1"]
    assert [r.threads for r in a.resources.values()] == [128, 32]
    assert a.layouts["a"].threads == 128
    assert a.layouts["p"].threads == 32
    workspace = next(s for s in a.program.body if isinstance(s, ir.Alloc))
    assert (workspace.buffer.name, [e.value for e in workspace.buffer.shape]) == ("partial", [8])
    assert a.program.attrs["kernels"] == ("two_launches_kernel", "two_launches_kernel_1")
    assert verify(a.program)


def test_fragments_are_dealt_out_whole():
    for name in ("row_sum", "softmax", "reducer_epoch"):
        a = lowered(name)
        for one in a.layouts.values():
            if one.kind == "fragment":
                owners, registers = one.threads_of(), one.registers()
                places = {(t, r) for t, r in zip(owners.flat, registers.flat, strict=True)}
                assert len(places) == owners.size, one.name
                assert 0 <= owners.min() <= owners.max() < one.threads


def test_layouts_agree_with_tilelang_s_own_evaluation():
    from tilelab.compiler.layouts import _nodes
    from tilelab.compiler.lowering import _run, emit
    from tilelab.compiler.targets import tvm_target
    from tilelab.compiler.watch import Watch

    c = case("flash_attention")
    program = tilelab.capture(c.load(), consts=c.consts)
    mine = infer_layouts(program, "sm_80")
    watch = Watch(stop_after="tl.LayoutInference")
    with pytest.raises(Exception):
        _run(emit(program), program, tvm_target("sm_80")[1], watch)
    theirs = {}
    for node in _nodes(watch.kept["tl.LayoutInference"]):
        if type(node).__name__ == "SBlock":
            theirs.update({b.name: x for b, x in (node.annotations.get("layout_map") or {}).items()})
    assert {n for n, x in mine.items() if x.kind != "loop"} == set(theirs)
    rng = np.random.default_rng(0)
    for name, x in theirs.items():
        for _ in range(5):
            at = tuple(int(rng.integers(n)) for n in mine[name].shape)
            index = [int(e) for e in x.map_forward_index([0] * (len(x.get_forward_vars()) - len(at)) + list(at))]
            layout = mine[name].map
            from tilelab.layout import evaluate

            env = dict(zip(layout.params, at, strict=True))
            assert [int(evaluate(e, env)) for e in layout.index] == index


def test_loop_layouts_are_named_by_their_line():
    a = lowered("vector_add")
    loops = [x for x in a.layouts.values() if x.kind == "loop"]
    assert all(x.name == f"loop at {x.loc.line}" for x in loops)
    assert all(x.shape == (256,) and x.threads == 128 for x in loops)


def test_the_history_keeps_the_ir_of_passes_that_changed_it():
    a = lowered("copy1d_129", history=True)
    changed = [p for p in a.passes if p.changed]
    assert changed
    assert all(p.after for p in changed)
    assert not any(p.after for p in a.passes if not p.changed)
    assert "T.copy" not in changed[-1].after


@pytest.mark.parametrize(
    ("target", "canonical", "says"),
    [("sm_75", "sm_75", "__global__"), ("sm_89", "sm_89", "__global__"), ("sm_100", "sm_100a", "__global__"), ("gfx942", "gfx942", "hip")],
)
def test_other_targets(target, canonical, says):
    a = lowered("row_sum", target)
    assert a.target == canonical
    assert says in a.source


def test_an_unknown_target_is_named():
    with pytest.raises(InputError, match="'sm_1' is not a target"):
        lowered("row_sum", "sm_1")


def width():
    @T.prim_func
    def k(X: T.Tensor((1, 229), "float32"), Y: T.Tensor((1, 229), "float32")):
        with T.Kernel(1, threads=128):
            F = T.alloc_fragment((229,), "float32")
            T.copy(X[0, 0:229], F)
            for i in T.Parallel(229):  # no layout here
                F[i] = F[i] * 2.0
            T.copy(F, Y[0, 0:229])

    return k


@T.prim_func
def mixed(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "bfloat16"), O: T.Tensor((64, 64), "float32")):
    with T.Kernel(1, threads=128) as _:
        a = T.alloc_shared((64, 64), "float16")
        b = T.alloc_shared((64, 64), "bfloat16")
        c = T.alloc_fragment((64, 64), "float32")
        T.copy(A, a)
        T.copy(B, b)
        T.clear(c)
        T.gemm(a, b, c)  # two dtypes
        T.copy(c, O)


def test_a_gemm_of_two_dtypes_is_tl701():
    with pytest.raises(KernelRefused) as caught:
        tilelab.lower(mixed)
    f = caught.value.finding
    assert (f.code, f.line) == ("TL701", line_of("# two dtypes"))
    assert "a is float16 but b is bfloat16" in f.message


def filled(shape, threads, scope, fill):
    @T.prim_func
    def k(O: T.Tensor(shape, "float32")):
        with T.Kernel(1, threads=threads) as _:
            if scope == "shared":
                B = T.alloc_shared(shape, "float32")
            else:
                B = T.alloc_fragment(shape, "float32")
            if fill:
                T.fill(B, 1.0)
            else:
                T.clear(B)
            T.copy(B, O)

    return k


@pytest.mark.parametrize(
    ("shape", "threads", "scope"), [((65,), 64, "shared"), ((192,), 128, "fragment"), ((3, 33), 32, "shared"), ((5, 12), 32, "fragment")]
)
@pytest.mark.parametrize("fill", [True, False])
def test_no_layout_of_a_fill_is_tl403(shape, threads, scope, fill):
    with pytest.raises(KernelRefused) as caught:
        tilelab.lower(filled(shape, threads, scope, fill))
    f = caught.value.finding
    assert f.code == "TL403"
    assert f.evidence["shape"] == list(shape)
    assert f.evidence["buffers"] == ["B"]
    assert f.line in range(line_of("if fill:"), line_of("T.copy(B, O)"))


def test_no_layout_is_tl403():
    with pytest.raises(KernelRefused) as caught:
        tilelab.lower(width)
    f = caught.value.finding
    assert f.code == "TL403"
    assert (f.file, f.line) == (__file__, line_of("# no layout here"))
    assert "(229,)" in f.message
    assert "128 threads" in f.message
    assert "256" in f.fix
    assert (f.evidence["shape"], f.evidence["threads"], f.evidence["padded"]) == ([229], 128, 256)


def conflict():
    @T.prim_func
    def k(Q: T.Tensor((64, 64), "float16"), K: T.Tensor((128, 64), "float16"), O: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=256):
            q = T.alloc_shared((64, 64), "float16")
            kk = T.alloc_shared((128, 64), "float16")
            s = T.alloc_fragment((64, 128), "float32")
            p = T.alloc_fragment((64, 128), "float16")
            o = T.alloc_fragment((64, 64), "float32")
            T.copy(Q, q)
            T.copy(K, kk)
            T.clear(s)
            T.clear(o)
            T.gemm(q, kk, s, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)  # wants s one way
            for i, j in T.Parallel(64, 128):  # both meet here
                p[i, j] = s[i, j]
            T.gemm(p, kk, o, policy=T.GemmWarpPolicy.FullRow)  # wants p another way
            T.copy(o, O)

    return k


def test_conflicting_layouts_are_tl402():
    with pytest.raises(KernelRefused) as caught:
        tilelab.lower(conflict)
    f = caught.value.finding
    assert f.code == "TL402"
    assert (f.file, f.line) == (__file__, line_of("# both meet here"))
    assert f.evidence["lines"] == {"s": line_of("# wants s one way"), "p": line_of("# wants p another way")}
    one, two = f.evidence["maps"]
    assert (one["buffer"], two["buffer"]) == ("s", "p")
    assert one["shape"] == two["shape"] == [64, 128]
    at = f.evidence["parts_at"]["index"]
    assert np.array(one["owners"]).shape == (64, 128)
    assert f.evidence["parts_at"]["threads"][0] != f.evidence["parts_at"]["threads"][1]
    one, two = (np.array(m["owners"]) for m in f.evidence["maps"])
    assert one[tuple(at)] != two[tuple(at)]
    assert (one == two)[: at[0]].all()
    assert "shared memory" in f.fix
    json.dumps(f.to_json())


def test_what_a_target_cannot_do_is_told_in_one_sentence():
    with pytest.raises(KernelRefused) as caught:
        lowered("tma_once", "sm_80")
    f = caught.value.finding
    assert f.code == "TL702"
    assert "sm_80" in f.message
    assert "\n" not in f.message


def test_the_cache_answers_the_second_time(monkeypatch):
    first = lowered("grid3d")
    calls = []
    monkeypatch.setattr("tilelab.compiler.lowering._lower", lambda *a: calls.append(a))
    second = lowered("grid3d")
    assert not calls
    assert second.source == first.source
    assert serde.dumps(second) == serde.dumps(first)
    lowered("grid3d", "sm_75")
    assert len(calls) == 1  # another target is another entry


def test_a_damaged_cache_entry_is_dropped():
    a = lowered("grid3d")
    key = cache.key(a.tile, "sm_80", history=False)
    path = cache.folder() / f"{key}.json"
    assert path.is_file()
    path.write_bytes(b"{broken")
    assert cache.get(key) is None
    assert not path.exists()
    assert lowered("grid3d").source == a.source


def test_the_cache_is_bounded(tmp_path):
    for i in range(5):
        (tmp_path / f"{i}.json").write_bytes(b"x" * 100)
        __import__("os").utime(tmp_path / f"{i}.json", (i, i))
    cache._trim(tmp_path, most=250)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["3.json", "4.json"]


@pytest.mark.slow
def test_processes_share_the_cache(tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from cases import cases\nimport tilelab\n"
        "c = next(c for c in cases() if c.name == 'copy1d_129')\n"
        "print(hash(tilelab.lower(c.load(), consts=c.consts).source) != 0)\n"
    )
    import os
    from pathlib import Path

    corpus = str(Path(__file__).parents[1] / "corpus")
    env = {**os.environ, "TILELAB_CACHE_DIR": str(tmp_path)}
    runs = [subprocess.Popen([sys.executable, "-c", code, corpus], env=env, stdout=subprocess.PIPE) for _ in range(2)]
    assert [r.communicate()[0].strip() for r in runs] == [b"True", b"True"]
    assert len(list((tmp_path / "lowered").glob("*.json"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("c", "target"),
    [(c, t) for c in cases() for t in c.targets if c.file not in ("kernels/attention.py",)],
    ids=lambda v: v if isinstance(v, str) else v.name,
)
def test_the_corpus_lowers_and_its_device_programs_are_grammatical(c, target):
    a = tilelab.lower(c.load(), target=target, consts=c.consts)
    assert verify(a.program) is a.program
    assert a.source
    assert a.resources
    back = serde.loads(serde.dumps(a), type(a))
    assert serde.digest(back.program) == serde.digest(a.program)


def test_lowering_is_quiet(capfd):
    lowered("nested_macros", use_cache=False)
    with pytest.raises(KernelRefused):
        tilelab.lower(width, use_cache=False)
    assert capfd.readouterr() == ("", "")


def test_a_jit_s_pass_configuration_is_used():
    @tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True})
    def plain(A, B):
        A: T.Tensor[[128, 128], T.float16]
        B: T.Tensor[[128, 128], T.float16]
        C = T.empty((128, 128), T.float32)
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((128, 32), T.float16)
            b = T.alloc_shared((32, 128), T.float16)
            c = T.alloc_fragment((128, 128), T.float32)
            T.clear(c)
            for k in T.Pipelined(4, num_stages=2):
                T.copy(A[0, k * 32], a)
                T.copy(B[k * 32, 0], b)
                T.gemm(a, b, c)
            T.copy(c, C)
        return C

    a = tilelab.lower(plain, target="sm_90")
    assert a.attrs["warp_specialized"] == "false"
    assert a.resources["plain_kernel"].threads == 128
    assert verify(a.tile)


@pytest.mark.parametrize(("target", "first"), [("cutedsl", "@cute.kernel"), ("metal", "// Function: simple_kernel"), ("webgpu", "// Function: simple_kernel")])
def test_other_languages(target, first):
    @T.prim_func
    def simple(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(128):
                B[i] = A[i] + 1.0

    artifact = tilelab.lower(simple, target=target)
    assert artifact.source.lstrip().startswith(first)
    assert artifact.program.level == "thread"


@pytest.mark.parametrize(("target", "said"), [("metal", "TileLang has no T.reduce for metal"), ("webgpu", "TileLang has no T.reduce for webgpu")])
def test_what_a_target_lacks_is_said_in_plain_words(target, said):
    @T.prim_func
    def sums(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            a, b = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64,), "float32")
            T.copy(A, a)
            T.reduce_sum(a, b, dim=1)
            T.copy(b, B)

    with pytest.raises(KernelRefused) as caught:
        tilelab.lower(sums, target=target)
    assert said in caught.value.finding.message


def test_the_text_before_and_after_each_pass():
    @T.prim_func
    def simple(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(128):
                B[i] = A[i] + 2.0

    kept = tilelab.lower(simple, history=True)
    assert "def simple" in kept.start
    assert kept.text_before(0) == kept.start
    for k, p in enumerate(kept.passes):
        assert (kept.text_after(k) != kept.text_before(k)) == bool(p.after and p.after != kept.text_before(k))
    with pytest.raises(InputError, match="not kept"):
        tilelab.lower(simple).text_after(3)


def test_what_is_cached_is_opened_without_tilelang(tmp_path, monkeypatch):
    import subprocess
    import sys

    from tilelab import serde

    monkeypatch.setenv("TILELAB_CACHE_DIR", str(tmp_path))

    @T.prim_func
    def simple(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(128):
                B[i] = A[i] + 3.0

    program = tilelab.capture(simple)
    first = tilelab.lower(program)
    assert tilelab.lower(program) is first  # from memory
    serde.save(program, tmp_path / "program.json")
    code = "import sys, tilelab\nfrom tilelab import ir, serde\nprogram = serde.load(sys.argv[1], ir.Program)\nprint(tilelab.lower(program).source)\nassert 'tvm' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "program.json")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == first.source.strip()
