"""What a launch under ``tilelab run`` may be given: as TileLang itself on a GPU, told in plain words."""

import pytest

KERNELS = """
import tilelang, tilelang.language as T, torch

@tilelang.jit(out_idx=[-1])
def add(n, m):
    @T.prim_func
    def kernel(A: T.Tensor((n, m), "float32"), B: T.Tensor((n, m), "float32"), C: T.Tensor((n, m), "float32")):
        with T.Kernel(1) as _:
            for i, j in T.Parallel(n, m):
                C[i, j] = A[i, j] + B[i, j]
    return kernel

@tilelang.jit(out_idx=[-1])
def strided(n, m):
    s = T.dynamic("s")
    @T.prim_func
    def kernel(A: T.StridedTensor((n, m), (s, 1), "float32"), C: T.Tensor((n, m), "float32")):
        with T.Kernel(1) as _:
            for i, j in T.Parallel(n, m):
                C[i, j] = A[i, j]
    return kernel

@tilelang.jit(out_idx=[-2, -1])
def two(m):
    n = T.dynamic("n")
    @T.prim_func
    def kernel(A: T.Tensor((n, m), "float32"), B: T.Tensor((n, m), "float32"), C: T.Tensor((n, m), "float32")):
        with T.Kernel(1) as _:
            for i, j in T.Parallel(n, m):
                B[i, j] = A[i, j]
                C[i, j] = -A[i, j]
    return kernel

x = torch.arange(32., device="cuda").reshape(4, 8)
wide = torch.arange(64., device="cuda").reshape(4, 16)
"""

SEEN = (
    KERNELS
    + """
k = add(4, 8)
def said(given):
    try:
        k(*given)
    except Exception as error:
        return type(error).__mro__, str(error)
    raise SystemExit("accepted")

for given, kind, words in (
    ((x.T.contiguous().T, x), RuntimeError, "strides (8, 1), a tensor with strides (1, 4)"),
    ((wide[:, :8], x), RuntimeError, "pass A.contiguous()"),
    ((x[:1].expand(4, 8), x), RuntimeError, "(0, 1)"),
    ((wide, x), RuntimeError, "A is declared (4, 8) float32, (4, 16) float32 was given"),
    ((x, x.half()), RuntimeError, "B is declared"),
    ((None, x), RuntimeError, "A is None"),
    ((1.5, x), RuntimeError, "A is declared"),
    ((x,), ValueError, "expected 2 inputs, but 1 are provided"),
    ((x, x, x), ValueError, "expected 2 inputs, but 3 are provided"),
):
    mro, text = said(given)
    assert kind in mro and words in text, (mro, text)
assert torch.equal(k(x, x[:, :]), x + x)
assert torch.equal(strided(4, 8)(wide[:, :8]), wide[:, :8])
b, c = two(8)(x[:, :])
assert isinstance(two(8)(x), list) and torch.equal(c, -x)
b, c = two(8)(x.T.contiguous().T[:1])  # of one row any stride will do, as on a GPU, but not of its columns
"""
)


def test_arguments_are_refused_as_on_a_gpu(shell, tmp_path):
    (tmp_path / "s.py").write_text(SEEN)
    done = shell("run", "s.py")
    assert done.code == 2, done.err
    line = len(SEEN.splitlines())
    assert done.err.startswith(f"s.py:{line}: A is declared with strides (8, 1), a tensor with strides (1, 4)"), done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        ("add(4, 8)(wide, x)", 2, "s.py:36: A is declared (4, 8) float32, (4, 16) float32 was given"),
        ("print(add(4, 8)(x.cpu(), x).sum().item())", 0, "on a GPU, TileLang refuses it"),
    ],
)
def test_misfits_are_one_line(shell, tmp_path, call, code, words):
    (tmp_path / "s.py").write_text(KERNELS + call + "\n")
    done = shell("run", "s.py")
    assert done.code == code, done.err
    assert words in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("check", [(), ("--check",)])
def test_a_kernel_that_cannot_run_ends_the_script_and_is_told_once(shell, tmp_path, check):
    (tmp_path / "s.py").write_text(
        """
import tilelang, tilelang.language as T, torch

@tilelang.jit
def kernel(A: T.Tensor((32,), "float32")):
    with T.Kernel(1, threads=32):
        bar = T.alloc_barrier(32)
        T.barrier_wait(bar, 0)
        A[T.get_thread_binding()] = 1.0

kernel(torch.zeros(32, device="cuda"))
print("after")
"""
    )
    done = shell("run", *check, "s.py")
    assert done.code == 1
    assert "after" not in done.out
    assert done.err.count("TL206") == 1, done.err


SMALL = """
import tilelang, tilelang.language as T, torch

@tilelang.jit
def kernel(A: T.Tensor((8, 64), "float16")):
    with T.Kernel(1, threads=128):
        a, b = T.alloc_shared((8, 64), "float16"), T.alloc_shared((64, 8), "float16")
        c = T.alloc_fragment((8, 8), "float32")
        T.clear(a)
        T.clear(b)
        T.clear(c)
        T.gemm(a, b, c)

kernel(torch.zeros(8, 64, dtype=torch.float16, device="cuda"))
print("ran")
"""


def test_what_lowering_refuses_is_told_where_it_is_asked_for(shell, tmp_path):
    (tmp_path / "s.py").write_text(SMALL)
    assert shell("run", "s.py").code == 0, "the tile level has no tensor cores"
    checked = shell("run", "--check", "s.py")
    assert (checked.code, checked.out) == (1, "ran\n")
    assert checked.err.count("s.py:12: error TL701: T.gemm: M is 8") == 1, checked.err
    (tmp_path / "s.py").write_text(SMALL + "print(kernel.compile().get_kernel_source())\n")
    asked = shell("run", "s.py")
    assert asked.code == 1
    assert "s.py:12: error TL701: T.gemm: M is 8" in asked.err
    assert "Traceback" not in asked.err


def test_addresses_reach_the_tensors_at_them(shell, tmp_path):
    (tmp_path / "s.py").write_text(
        """
import tilelang, tilelang.language as T, torch

@T.prim_func
def whole(a: T.ptr, b: T.ptr, n: T.int32):
    A = T.make_tensor(a, (n,), "float32")
    B = T.make_tensor(b, (n,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(n):
            B[i] = A[i] + 1

@T.prim_func
def table(src: T.Tensor([2], T.ptr), dst: T.Tensor([2], T.ptr)):
    with T.Kernel(2, threads=32) as g:
        S = T.make_tensor(src[g], (16,), "float32")
        D = T.make_tensor(dst[g], (16,), "float32")
        for i in T.Parallel(16):
            D[i] = S[i] * 2

x, y = torch.arange(16.0, device="cuda"), torch.zeros(16, device="cuda")
kernel = tilelang.compile(whole)
kernel(x, y, 16)
assert torch.equal(y, x + 1)
y.zero_()
kernel(x.data_ptr(), y.data_ptr(), 16)
assert torch.equal(y, x + 1)
first, second = torch.zeros(16, device="cuda"), torch.zeros(16, device="cuda")
pointers = lambda *t: torch.tensor([v.data_ptr() for v in t], dtype=torch.int64, device="cuda")
tilelang.compile(table)(pointers(x, y), pointers(first, second))
assert torch.equal(first, 2 * x) and torch.equal(second, 2 * y)
try:
    kernel(12345, y.data_ptr(), 16)
except RuntimeError as error:
    assert "no tensor begins" in str(error)
else:
    raise SystemExit("an address of nothing was taken")
"""
    )
    done = shell("run", "s.py")
    assert done.code == 0, done.err


def test_elements_of_four_bits_come_in_pairs(shell, tmp_path):
    (tmp_path / "s.py").write_text(
        """
import tilelang, tilelang.language as T, torch

@tilelang.jit(out_idx=[-1])
def double(n, dtype):
    @T.prim_func
    def kernel(A: T.Tensor((n,), dtype), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                B[i] = T.cast(A[i], "float32") * 2
    return kernel

@tilelang.jit(out_idx=[-1])
def same(n, dtype):
    @T.prim_func
    def kernel(A: T.Tensor((n,), dtype), B: T.Tensor((n,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(n):
                B[i] = A[i]
    return kernel

pairs = torch.arange(0, 256, 17, dtype=torch.uint8, device="cuda")  # 0x00, 0x11, … 0xff
e2m1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], device="cuda")
assert torch.equal(double(32, "float4_e2m1fn")(pairs), 2 * e2m1.repeat_interleave(2))
signed = torch.tensor([*range(8), *range(-8, 0)], device="cuda")
assert torch.equal(double(32, "int4")(pairs.view(torch.int8)), 2.0 * signed.repeat_interleave(2))
back = same(32, "float4_e2m1fn")(pairs)
assert back.shape == (16,) and torch.equal(back.view(torch.uint8), pairs), back
"""
    )
    done = shell("run", "s.py")
    assert done.code == 0, done.err
