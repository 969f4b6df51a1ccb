"""Our evaluation of layouts against TileLang's own: its expressions evaluated by TVM, element by element."""

import itertools

import numpy as np
import pytest

from tilelab.views import layout

pytestmark = pytest.mark.slow  # imports TileLang

SHAPES = [(64, 64), (128, 32), (32, 256), (16, 64)]


@pytest.fixture(scope="module")
def tl():
    import tilelang
    from tilelang import layout as layouts
    from tvm import tirx
    from tvm.arith import Analyzer

    def at(one, *where):
        """TileLang's outputs for one element, by substitution and simplification."""
        outs = one.map_forward_index([tirx.IntImm("int32", int(w)) for w in where])
        return [int(Analyzer().simplify(o)) for o in outs]

    def buffer(shape, dtype):
        return tirx.decl_buffer(shape, dtype, name="A", scope="shared.dyn")

    return type("TL", (), {"layouts": layouts, "at": staticmethod(at), "buffer": staticmethod(buffer), "Analyzer": Analyzer, "tirx": tirx, "lib": tilelang})


def some(shape):
    rng = np.random.default_rng(0)
    corners = list(itertools.product(*[(0, n - 1) for n in shape]))
    return corners + [tuple(rng.integers(0, shape)) for _ in range(60)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_swizzled_shared_layouts(tl, shape, dtype):
    theirs = tl.layouts.make_swizzled_layout(tl.buffer(shape, dtype))
    record = layout(theirs, dtype=dtype).data["layouts"][0]
    out_shape = [int(n) for n in theirs.get_output_shape()]
    for where in some(shape):
        flat = int(np.ravel_multi_index(tl.at(theirs, *where), out_shape))
        assert record["arrays"]["address"][where] == flat
    fact = record["facts"][1]
    row_bytes = shape[1] * (2 if dtype == "float16" else 4)
    assert fact == {"key": "swizzle", "fill": {"bytes": min(128, row_bytes)}}


@pytest.mark.parametrize("copies", [1, 4])
def test_fragments_and_their_copies(tl, copies):
    if copies == 1:
        theirs = tl.layouts.Fragment((16, 8), forward_fn=lambda i, j: (i % 8 * 4 + j // 2, j % 2 + 2 * (i // 8)))
    else:
        theirs = tl.layouts.Fragment((16, 8), forward_thread_fn=lambda i, j, rep: i + 16 * rep, replicate=copies, forward_index_fn=lambda i, j: j)
    record = layout(theirs).data["layouts"][0]
    thread, register = record["arrays"]["thread"], record["arrays"]["register"]
    assert thread.shape == (16, 8, copies)
    forward = list(theirs.get_forward_vars())
    for i, j, rep in np.ndindex(16, 8, copies):
        given = {v: tl.tirx.IntImm("int32", n) for v, n in zip(forward, ([rep] if copies > 1 else []) + [i, j], strict=True)}
        theirs_thread = int(tl.Analyzer().simplify(tl.tirx.stmt_functor.substitute(theirs.thread, given)))
        theirs_index = [int(tl.Analyzer().simplify(tl.tirx.stmt_functor.substitute(e, given))) for e in theirs.index]
        assert thread[i, j, rep] == theirs_thread
        assert register[i, j, rep] == theirs_index[0]
    assert record["replicas"] == copies


def test_a_wgmma_layout_is_named(tl):
    theirs = tl.layouts.make_wgmma_swizzled_layout(tl.buffer((64, 128), "float16"))
    record = layout(theirs).data["layouts"][0]
    assert record["facts"] == [{"key": "one_to_one", "fill": {}}, {"key": "swizzle", "fill": {"bytes": 128}}]
