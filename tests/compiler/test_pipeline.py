"""Our rule for pipelines against what TileLang plans, on kernels of the corpus; and shared memory against its map."""

import importlib.util
from pathlib import Path

import pytest
from cases import cases
from schedule_run import agrees

from tilelab.analysis import pipeline
from tilelab.compiler import capture, loading, lower

KERNELS = Path(__file__).resolve().parents[1] / "corpus" / "kernels"
pytestmark = pytest.mark.slow  # imports TileLang

CASES = [
    ("gemms", "gemm", {"M": 128, "N": 128, "K": 256, "num_stages": 1}, "sm_80", "planned"),
    ("gemms", "gemm", {"M": 128, "N": 128, "K": 256}, "sm_80", "planned"),
    ("gemms", "gemm", {"M": 128, "N": 128, "K": 256, "num_stages": 4}, "sm_80", "planned"),
    ("gemms", "gemm_hand_schedule", {"M": 128, "N": 128, "K": 128}, "sm_80", "hand"),
    ("gemms", "gemm", {"M": 128, "N": 128, "K": 256, "num_stages": 3}, "sm_90", "roles"),
    ("attention", "flash_attention", {"heads": 2, "seq": 128, "dim": 64}, "sm_80", "planned"),
]


def kernel(file, name):
    spec = importlib.util.spec_from_file_location(f"pipeline_{file}", KERNELS / f"{file}.py")
    module = importlib.util.module_from_spec(spec)
    with loading():
        spec.loader.exec_module(module)
    return getattr(module, name)


@pytest.mark.parametrize(("file", "name", "consts", "target", "basis"), CASES)
def test_the_plan_is_that_of_tilelang(file, name, consts, target, basis):
    artifact = lower(kernel(file, name), target=target, consts=consts)
    (told,), (ours,) = pipeline.schedules(artifact), pipeline.schedules(artifact.tile)
    assert told.basis == basis
    assert told.findings == ()
    if artifact.pipelines:
        (plan,) = artifact.pipelines
        assert tuple(s.stage for s in ours.statements) == plan.stage
        assert tuple(s.order for s in ours.statements) == plan.order
        assert told.slots == ours.slots
    sizes = {s.name: s.size_bytes for s in artifact.smem}
    assert {b.name: b.bytes for b in told.buffers if b.scope.startswith("shared")} == {b.name: sizes[b.name] for b in told.buffers if b.scope.startswith("shared")}


PIPELINED = [c for c in cases() if "Pipelined" in (KERNELS.parent / c.file).read_text()]


@pytest.mark.parametrize("case", PIPELINED, ids=lambda c: c.name)
def test_schedules_of_the_corpus_keep_their_meaning(case):
    program = capture(case.load(), consts=case.consts)
    for loop in pipeline.pipelined_loops(program):
        works = pipeline.work_of(loop)
        (own,) = [s for s in pipeline.schedules(program) if s.loc == loop.loc and s.loop == loop.var.name]
        for plan in (own, *pipeline.what_if(loop), *pipeline.what_if(loop, roles=True)):
            assert plan.findings == ()
            assert agrees(plan, works)
