"""What the view says about layouts, and the passes over the banks, against counting by hand."""

import numpy as np
import pytest

from tilelab.analysis.banks import conflicts, wavefronts
from tilelab.layout_make import atom, make_fragment, make_shared, row_major, swizzled
from tilelab.views.layout_facts import arrangement, facts, made_of, replicas


def passes_by_hand(addresses, lane_bytes):
    """The rule, spelled out: phases of lanes, in each the most distinct words in one bank."""
    words = max(1, lane_bytes // 4)
    per_phase = len(addresses) // words
    total = 0
    for phase in range(words):
        seen = {}
        for a in addresses[phase * per_phase : (phase + 1) * per_phase]:
            for k in range(words):
                seen.setdefault((a // 4 + k) % 32, set()).add(a // 4 + k)
        total += max(len(s) for s in seen.values())
    return total


@pytest.mark.parametrize("lane_bytes", [1, 2, 4, 8, 16])
def test_wavefronts_by_counting(lane_bytes):
    rng = np.random.default_rng(lane_bytes)
    requests = rng.integers(0, 512, (40, 32)) * max(4, lane_bytes)
    requests[0] = np.arange(32) * max(4, lane_bytes)
    requests[1] = 0
    assert wavefronts(requests, lane_bytes).tolist() == [passes_by_hand(r.tolist(), lane_bytes) for r in requests]


def test_the_column_read_that_was_measured():
    """A 32×32 float32 tile read down its columns: 31 extra passes in each of 32 requests, the 992 that a GPU counts."""
    (column,) = [c for c in conflicts(row_major((32, 32), dtype="float32")) if c["pattern"] == "column"]
    assert (column["before"] - column["ideal"]) * 32 == 992


def test_padding_and_swizzles_help():
    def column(one):
        return next(c["after"] for c in conflicts(one) if c["pattern"] == "column")

    assert column(make_shared((32, 32), lambda i, j: i * 33 + j, dtype="float32")) == 1
    assert next(c for c in conflicts(swizzled((64, 64))) if c["pattern"] == "ldmatrix") == {"pattern": "ldmatrix", "before": 8, "after": 1, "ideal": 1}


@pytest.mark.parametrize(
    ("one", "key", "fill"),
    [
        (row_major((8, 8)), "row_major", {}),
        (make_shared((8, 4), lambda i, j: j * 8 + i), "column_major", {}),
        (make_shared((8, 8), lambda i, j: i * 9 + j), "padded", {"count": 7}),
        (make_shared((8, 8), lambda i, j: j // 4 * 32 + i * 4 + j % 4), "blocked", {}),
        (swizzled((64, 64)), "swizzle", {"bytes": 128}),
        (swizzled((64, 128)), "swizzle", {"bytes": 128}),
        (swizzled((64, 32), span_bytes=64), "swizzle", {"bytes": 64}),
        (swizzled((64, 16), span_bytes=32), "swizzle", {"bytes": 32}),
        (make_shared((8, 8), lambda i, j: (i * 8 + j) * 5 % 64), "irregular", {}),
    ],
)
def test_arrangements(one, key, fill):
    assert arrangement(one) == {"key": key, "fill": fill}


def test_tensor_core_tiles_are_named():
    assert made_of(atom("mma.m16n8k16.D")) == "mma.m16n8k16.D"
    assert made_of(atom("mma.m16n8k16.A")) == "mma.m16n8k16.A"
    assert made_of(atom("mma.m16n8k16.B")) == "mma.m16n8k16.B"
    assert made_of(atom("wgmma.m64n8k16.D")) == "mma.m16n8k16.D / wgmma.m64n8k16.D"
    assert made_of(make_fragment((16, 8), lambda i, j: (i % 8 * 4 + j % 4, j // 4 + i // 8 * 2))) == ""
    assert made_of(make_fragment((32,), lambda i: (i, 0))) == ""


def test_copies_are_counted():
    one = make_fragment((4, 4), lambda i, j, rep: (i + 4 * rep, j), replicate=8)
    assert replicas(one) == 8
    assert facts(one)[0] == {"key": "replicated", "fill": {"count": 8}}
