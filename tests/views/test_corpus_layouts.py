"""The inferred layouts of every kernel in the corpus: our evaluation against TileLang's own expressions, and the invariants."""

import numpy as np
import pytest
from cases import cases

import tilelab
from tilelab.compiler.layouts import _nodes, read_layouts
from tilelab.compiler.lowering import _run, threads_of
from tilelab.compiler.targets import tvm_target
from tilelab.compiler.watch import LAYOUTS, Watch
from tilelab.compiler.writer import emit

pytestmark = pytest.mark.slow  # imports TileLang
SOME = 6  # elements of each layout that TVM evaluates; ours are all checked by the invariants


def inferred(program, target):
    """The module after TileLang's layout inference."""
    watch = Watch(stop_after=LAYOUTS)
    try:
        _run(emit(program), program, tvm_target(target)[1], watch)
    except Exception:
        assert watch.stopped
    return watch.kept[LAYOUTS]


def theirs_by_name(module):
    """Buffer name → TileLang's layouts of buffers so called."""
    found = {}
    for node in _nodes(module):
        if type(node).__name__ == "SBlock":
            for data, layout in (node.annotations.get("layout_map") or {}).items():
                found.setdefault(str(data.name), []).append(layout)
    return found


def evaluated(layout, at, rep):
    """TileLang's (thread or None, flat index without its extents) of one element, by substitution and simplification in TVM."""
    from tvm import tirx
    from tvm.arith import Analyzer

    forward = list(layout.get_forward_vars()) if hasattr(layout, "get_forward_vars") else []
    values = [*([rep] if len(forward) == len(at) + 1 else []), *at]
    given = {v: tirx.IntImm("int32", int(n)) for v, n in zip(forward, values, strict=True)}

    def value(e):
        return int(Analyzer().simplify(tirx.stmt_functor.substitute(e, given)))

    thread = value(layout.thread) if hasattr(layout, "thread") else None
    return thread, [value(e) for e in layout.index]


@pytest.mark.parametrize("case", cases(), ids=lambda c: c.name)
def test_layouts_of_the_corpus(case):
    program = tilelab.capture(case.load(), consts=case.consts)
    module = inferred(program, case.targets[0])
    ours, _ = read_layouts(module, threads_of(program))
    theirs = theirs_by_name(module)
    rng = np.random.default_rng(0)
    for name, one in ours.items():
        # Invariants: every place exists and holds one element, and going there and back is the identity.
        assert one.check() == ()
        owned = one.map.thread is not None
        held = one.elements_of() if owned else one.element_at()
        numbers = np.arange(one.size).reshape(one.shape)
        there = (one.threads_of(), one.registers()) if owned else (one.addresses(),)
        assert np.array_equal(held[there], np.broadcast_to(numbers[..., None], there[0].shape) if owned else numbers)
        candidates = [t for t in theirs.get(name, []) if [int(n) for n in t.get_input_shape()] == list(one.shape)]
        if len(candidates) != 1:  # a loop, or several buffers of one name
            continue
        layout = candidates[0]
        base = getattr(getattr(layout, "thread_range", None), "min", 0)
        for _ in range(SOME):
            at = tuple(int(rng.integers(0, n)) for n in one.shape)
            rep = int(rng.integers(0, one.map.replicate_extent))
            thread, index = evaluated(layout, at, rep)
            if owned:
                assert one.threads_of()[at][rep] == thread + int(getattr(base, "value", base) or 0)
            extents = one.index_shape()
            flat = int(np.ravel_multi_index(index, extents))
            assert (one.registers()[at][rep] if owned else one.addresses()[at]) == flat
