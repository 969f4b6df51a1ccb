"""A conflict of layouts side by side: where the maps part is counted here, and every remedy that is offered works."""

import json

import numpy as np
import pytest
import tilelang.language as T

import tilelab
from tilelab.errors import InputError
from tilelab.finding import KernelRefused, finding
from tilelab.views import View, conflict, layout

pytestmark = pytest.mark.slow  # imports TileLang


def kernel(first=T.GemmWarpPolicy.FullCol, second=T.GemmWarpPolicy.FullRow, threads=256):
    @T.prim_func
    def k(Q: T.Tensor((64, 64), "float16"), K: T.Tensor((128, 64), "float16"), O: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=threads):
            q = T.alloc_shared((64, 64), "float16")
            kk = T.alloc_shared((128, 64), "float16")
            s = T.alloc_fragment((64, 128), "float32")
            p = T.alloc_fragment((64, 128), "float16")
            o = T.alloc_fragment((64, 64), "float32")
            T.copy(Q, q)
            T.copy(K, kk)
            T.clear(s)
            T.clear(o)
            T.gemm(q, kk, s, transpose_B=True, policy=first)
            for i, j in T.Parallel(64, 128):
                p[i, j] = s[i, j]
            T.gemm(p, kk, o, policy=second)
            T.copy(o, O)

    return k


def by_hand():
    @T.prim_func
    def k(Q: T.Tensor((64, 64), "float16"), K: T.Tensor((128, 64), "float16"), O: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=256):
            q = T.alloc_shared((64, 64), "float16")
            kk = T.alloc_shared((128, 64), "float16")
            s = T.alloc_fragment((64, 128), "float32")
            p = T.alloc_fragment((64, 128), "float16")
            p_shared = T.alloc_shared((64, 128), "float16")
            o = T.alloc_fragment((64, 64), "float32")
            T.copy(Q, q)
            T.copy(K, kk)
            T.clear(s)
            T.clear(o)
            T.gemm(q, kk, s, transpose_B=True, policy=T.GemmWarpPolicy.FullCol)
            for i, j in T.Parallel(64, 128):
                p[i, j] = s[i, j]
            T.copy(p, p_shared)
            T.gemm(p_shared, kk, o, policy=T.GemmWarpPolicy.FullRow)
            T.copy(o, O)

    return k


def test_both_maps_and_where_they_part():
    with pytest.raises(KernelRefused) as caught:
        tilelab.lower(kernel())
    found = caught.value.finding
    view = layout(kernel())
    assert (view.kind, view.title) == ("conflict", "s / p")
    one, two = (np.array(m["owners"]) for m in found.evidence["maps"])
    apart = sum(one[i, j] != two[i, j] for i, j in np.ndindex(64, 128))
    assert view.data["apart"].sum() == apart > 0
    assert f"{apart} of 8192 elements" in view.to_text()
    assert len(view.table(10)[1]) == 10
    assert view.to_svg().count("<image") == 2
    assert "<svg" in view.to_html()
    assert View.from_json(json.loads(view.render("json"))).to_json() == view.to_json()


def test_remedies_work():
    found = layout(kernel()).data
    assert found["remedies"][0].startswith("stage p in shared memory")
    assert found["remedies"][0] in found["fix"]
    assert tilelab.lower(by_hand()).layouts  # what the first remedy says
    for told in found["remedies"][1:]:
        assert told.startswith("use threads=")
        assert tilelab.lower(kernel(threads=int(told.removeprefix("use threads=")))).layouts


def test_a_remedy_that_does_not_work_is_not_offered():
    for policy in T.GemmWarpPolicy:
        with pytest.raises(KernelRefused):
            tilelab.lower(kernel(policy, policy))
    assert not any("policy" in told for told in layout(kernel()).data["remedies"])


def test_other_findings_have_no_two_maps():
    with pytest.raises(InputError, match="no two layouts"):
        conflict(finding("TL403", "none"))
