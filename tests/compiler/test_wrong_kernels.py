"""Kernels that TileLang's front end or lowering refuses, each told by operation, line and remedy."""

import pytest

HEAD = "import tilelang\nimport tilelang.language as T\n\n"
A, B, C = 'A: T.Tensor((128, 64), "float16")', 'B: T.Tensor((64, 128), "float16")', 'C: T.Tensor((128, 128), "float32")'
TILES = """a = T.alloc_shared((128, 64), "float16")
b = T.alloc_shared((64, 128), "float16")
c = T.alloc_fragment((128, 128), "float32")
T.clear(c)
T.copy(A, a)
T.copy(B, b)
"""

#: what is wrong → (parameters, body, the line of the body to blame, code, words)
WRONG = {
    "gemm policy": (f"{A}, {B}, {C}", TILES + 'T.gemm(a, b, c, policy="full")', "T.gemm", "TL702", ("T.gemm", "'full'", "GemmWarpPolicy")),
    "gemm into global": (f"{A}, {B}, {C}", TILES + "T.gemm(a, b, C)", "T.gemm", "TL701", ("C lies in global", "T.alloc_fragment")),
    "gemm too small": (
        A,
        'a = T.alloc_shared((8, 64), "float16")\nb = T.alloc_shared((64, 8), "float16")\nc = T.alloc_fragment((8, 8), "float32")\nT.gemm(a, b, c)',
        "T.gemm", "TL701", ("M is 8", "multiples of 16"),
    ),
    "gemm K": (f"{A}, {B}, {C}", TILES + "T.gemm(a, a, c)", "T.gemm", "TL701", ("K_A = 64, K_B = 128", "C must be (M, N)")),
    "wgmma on sm_80": (f"{A}, {B}, {C}", TILES + "T.wgmma_gemm(a, b, c)", "T.wgmma", "TL504", ("Hopper (sm_90)", "T.gemm")),
    "copy without end": (A, "T.copy(A)", "T.copy", "TL702", ("'dst'", "give that argument")),
    "copy with a keyword": (A, 's = T.alloc_shared((128, 64), "float16")\nT.copy(A, s, stages=3)', "T.copy", "TL702", ("'stages'",)),
    "copy of a number": (A, "T.copy(A, 3)", "T.copy", "TL701", ("A is (128, 64)",)),
    "slice with a step": (A, 's = T.alloc_shared((64, 64), "float16")\nT.copy(A[0:128:2, :], s)', "T.copy", "TL702", ("T.Parallel",)),
    "dtype": (A, 's = T.alloc_shared((4,), "flaot16")', "s =", "TL702", ("did you mean 'float16'",)),
    "shape of text": (A, 's = T.alloc_shared("64", "float16")', "s =", "TL702", ("the shape is no list", "(64, 64)")),
    "negative size": (A, 's = T.alloc_shared((-4, 64), "float16")', "", "TL702", ("-4", "sizes are whole numbers")),
    "one name for two": (A, "for i in T.Parallel(128, 64):\n    A[i, 0] = 1.0", "A[i", "TL702", ("name each extent", "for i, j in")),
    "two names for one": (A, "for i, j in T.Parallel(128):\n    A[i, j] = 1.0", "for", "TL702", ("2 names", "as many names")),
    "three indices": (A, "for i in T.Parallel(128):\n    A[i, 0, 0] = 1.0", "A[i", "TL702", ("2-dimensional", "one index for each")),
    "arithmetic of buffers": (A, 's = T.alloc_shared((128, 64), "float16")\nT.copy(s * 2, A)', "T.copy", "TL702", ("no arithmetic", "for i, j")),
    "integer division": (f'{A}, I: T.Tensor((4,), "int32")', "A[0, 0] = A[I[0] / 2, 0]", "A[0", "TL702", ("divided by /", "//")),
    "Python's math": (A, "import math\nA[0, 0] = math.exp(A[0, 1])", "A[0", "TL702", ("Python's math", "T.exp")),
    "numpy": (A, "import numpy as np\nA[0, 0] = np.maximum(A[0, 1], 0)", "A[0", "TL702", ("before the kernel runs", "T.max")),
    "half a stage": (A, "for k in T.Pipelined(4.5, num_stages=2):\n    A[k, 0] = 1.0", "for", "TL702", ("integer",)),
    "text to fill with": (A, 's = T.alloc_shared((128, 64), "float16")\nT.fill(s, "zero")', "T.fill", "TL701", ("'zero'", "give a number")),
    "barrier of text": (A, 'b = T.alloc_barrier("x")', "b =", "TL702", ("T.alloc_barrier", "a number is wanted")),
    "too many arguments": (A, "T.atomic_add(A, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)", "T.atomic_add", "TL702", ("fewer arguments",)),
    "return of a parameter": (A, "return A", "return", "TL702", ("T.empty",)),
    "reduce along no axis": (
        A, 'f = T.alloc_fragment((128, 64), "float16")\nr = T.alloc_fragment((128,), "float16")\nT.reduce_sum(f, r, dim=2)', "T.reduce",
        "TL701", ("f is (128, 64) float16 but r is (128,)", "check dim="),
    ),
    "fragment at a computed index": (
        A,
        ('x = T.alloc_fragment((128,), "float16")\nfor i in T.Parallel(128):\n    x[i] = A[i, 0]\nfor i in T.Parallel(128):\n'
        "    A[i, 1] = x[(i * 7) % 128]"),
        "for", "TL403", ("computed index", "shared buffer"),
    ),
    "fragment in two places": (
        A,
        ('x = T.alloc_fragment((128, 64), "float16")\ny = T.alloc_fragment((64, 128), "float16")\nT.copy(A, x)\n'
        "for i, j in T.Parallel(128, 64):\n    y[j, i] = x[i, j]\n    x[i, j] = y[j, i] + x[0, j]\nT.copy(x, A)"),
        "for", "TL402", ("x at (0, j) and at (i, j)", "shared memory"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_operation_line_and_remedy_are_told(cli, tmp_path, monkeypatch, what):
    parameters, body, blamed, code, words = WRONG[what]
    lines = body.strip("\n").split("\n")
    text = f"{HEAD}@T.prim_func\ndef k({parameters}):\n    with T.Kernel(1, threads=128):\n"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(text + "".join(f"        {line}\n" for line in lines))
    done = cli("check", "--json", "k.py::k")
    assert done.code == 1, done.err
    told = [f for f in done.json["findings"] if f["code"] == code]
    assert told, done.json["findings"]
    found = told[0]
    for word in words:
        assert word in found["message"] + found["fix"], found
    assert found["fix"]
    for ugly in ("script.ir_builder", "tvm", "tirx.", "bad_optional", "Check failed", "<class"):
        assert ugly not in found["message"] + found["fix"], found
    if blamed:
        whole = (tmp_path / "k.py").read_text().splitlines()
        assert whole[found["line"] - 1].strip().startswith(blamed), (found["line"], whole[found["line"] - 1])


def test_statements_outside_a_kernel_and_parameters_without_a_type(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(f"{HEAD}@T.prim_func\ndef k({A}):\n    for i in T.Parallel(128):\n        A[i, 0] = 1.0\n")
    (tmp_path / "p.py").write_text(f"{HEAD}@T.prim_func\ndef k(A):\n    with T.Kernel(1, threads=32):\n        A[0] = 1.0\n")
    host = cli("check", "k.py::k")
    assert "A is used outside a kernel" in host.out
    assert "with T.Kernel" in host.out
    assert "annotate every parameter" in cli("check", "p.py::k").out
