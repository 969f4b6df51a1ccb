"""serde: every record comes back the same; content has one digest; hostile input is an InputError."""

import json
import random
from dataclasses import replace

import numpy as np
import pytest

from tilelab import ir, serde
from tilelab.artifact import Artifact, PassRecord, Resources, SmemSlot
from tilelab.errors import InputError
from tilelab.finding import Finding
from tilelab.layout import Layout
from tilelab.trace import Event, PrintRecord, SimParams, Trace


def const(v, dtype="int32"):
    return ir.Const(dtype=dtype, value=v)


def program(name="k", extent=64, line=3, value=1.0):
    """A small program built by hand: A[i] = A[i] + value."""
    data = ir.Var(dtype="handle", name="A", pointee="float32", scope="global")
    buffer = ir.Buffer(name="A", dtype="float32", shape=(const(extent),), scope="global", data=data)
    handle = ir.Var(dtype="handle", name="A_handle")
    i = ir.Var(dtype="int32", name="i")
    loc = ir.SourceLoc(file="k.py", line=line, caller=ir.SourceLoc(file="k.py", line=line + 10))
    load = ir.Load(dtype="float32", buffer=buffer, indices=(i,))
    total = ir.Bin(dtype="float32", op="add", a=load, b=const(value, "float32"))
    store = ir.Store(buffer=buffer, indices=(i,), value=total, loc=loc)
    loop = ir.For(var=i, min=const(0), extent=const(extent), kind="parallel", body=(store,), attrs={"coalesced_width": 2}, loc=loc)
    bx = ir.Var(dtype="int32", name="bx")
    tx = ir.Var(dtype="int32", name="tx")
    block = ir.Block(name="tilelang_root", body=(loop,), attrs={"safe_value_map": ir.AttrMap(items=((data, -1.0),))})
    launch = ir.Launch(block_vars=(bx,), grid=(const(1),), thread_vars=(tx,), threads=(const(32),), body=(block,))
    return ir.Program(
        name=name, level="tile", params=(ir.Param(name="A", var=handle, buffer=buffer),), body=(launch,), sources={"k.py": "text"}
    )


def layout():
    p = ir.Var(dtype="int32", name="_i")
    return Layout(name="f", kind="fragment", shape=(8,), dtype="float32", scope="local.fragment", threads=4,
                  map=ir.IndexMap(params=(p,), shape=(const(8),), index=(ir.Bin(dtype="int32", op="floordiv", a=p, b=const(4)),),
                                  thread=ir.Bin(dtype="int32", op="floormod", a=p, b=const(4))))


def test_a_program_comes_back_with_its_identities():
    p = program()
    q = serde.loads(serde.dumps(p), ir.Program)
    assert serde.dumps(q) == serde.dumps(p)
    loop = next(s for s in ir.walk(q) if isinstance(s, ir.For))
    store = loop.body[0]
    assert store.indices[0] is loop.var
    assert store.value.a.indices[0] is loop.var
    assert store.buffer is q.params[0].buffer
    assert store.loc.caller.line == 13
    block = q.body[0].body[0]
    assert block.attrs["safe_value_map"].items == ((store.buffer.data, -1.0),)
    assert q.sources == {"k.py": "text"}


def test_a_trace_comes_back_with_its_arrays():
    import ml_dtypes

    loc = ir.SourceLoc(file="a.py", line=2)
    half = np.arange(6, dtype=np.float32).astype(ml_dtypes.bfloat16).reshape(2, 3)
    trace = Trace(
        outputs={"out0": half, "B": np.array([True, False])},
        result=(np.float64(2.5),),
        findings=(Finding(code="TL101", message="m", block=(0, 1, 2), indices={"i": 3}, evidence={"shape": [1, 2]}),),
        prints=(PrintRecord(message="x", name="s", dtype="int8", values=np.int8(3), loc=loc, block=(0, 0, 0), thread=None, loops={"k": 1}),),
        events=(Event(index=0, block=(0, 0, 0), role="", text="t", loc=loc, loops={}, after={"s": np.zeros((2, 2), np.float32)}),),
        counts={"blocks": 4},
    )
    back = serde.loads(serde.dumps(trace), Trace)
    assert back.outputs["out0"].dtype == half.dtype
    assert (back.outputs["out0"] == half).all()
    assert back.outputs["B"].dtype == bool
    assert float(back.result[0]) == 2.5
    assert back.findings == trace.findings
    assert back.prints[0].values == 3
    assert back.events[0].after["s"].shape == (2, 2)
    assert back.counts == {"blocks": 4}


def test_other_records_come_back():
    artifact = Artifact(
        tile=program(), target="sm_80", program=replace(program(), level="thread"), source="code", layouts={"f": layout()},
        passes=(PassRecord(name="p", seconds=0.5, changed=True),), resources={"k": Resources(threads=32, smem_bytes=0)},
        smem=(SmemSlot(kernel="k", name="s", dtype="int8", offset_bytes=None, size_bytes=4),), attrs={"a": "b"},
    )  # fmt: skip
    back = serde.loads(serde.dumps(artifact), Artifact)
    assert back.passes == artifact.passes
    assert back.smem == artifact.smem
    assert back.resources == artifact.resources
    assert (back.layouts["f"].threads_of() == layout().threads_of()).all()
    assert serde.loads(serde.dumps(SimParams(seed=3)), SimParams) == SimParams(seed=3)
    odd = Finding(code="TL301", message="", evidence={"value": float("nan"), "top": float("inf"), "list": [1, (2,)]})
    again = serde.loads(serde.dumps(odd), Finding)
    assert np.isnan(again.evidence["value"])
    assert again.evidence["top"] == float("inf")
    assert again.evidence["list"] == [1, (2,)]


def test_files_appear_whole_and_are_read_back(tmp_path):
    serde.save(program(), tmp_path / "p.json")
    assert json.loads((tmp_path / "p.json").read_text())["version"] == serde.VERSION
    assert serde.load(tmp_path / "p.json", ir.Program).name == "k"
    with pytest.raises(InputError, match=r"cannot read .*none.json"):
        serde.load(tmp_path / "none.json", ir.Program)


def test_the_digest_is_of_content():
    base = serde.digest(program())
    assert serde.digest(program()) == base  # other variables, same content
    assert serde.digest(program(line=99)) == base  # locations do not count
    assert serde.digest(replace(program(), sources={})) == base
    assert serde.digest(program(extent=65)) != base
    assert serde.digest(program(value=2.0)) != base
    assert serde.digest(program(name="other")) != base


def test_the_digest_tells_variables_apart():
    i, j = ir.Var(dtype="int32", name="i"), ir.Var(dtype="int32", name="i")
    same, other = ir.Bin(dtype="int32", op="add", a=i, b=i), ir.Bin(dtype="int32", op="add", a=i, b=j)
    assert serde.digest(same) != serde.digest(other)


def test_shared_parts_do_not_blow_up():
    e = const(1)
    for _ in range(60):
        e = ir.Bin(dtype="int32", op="add", a=e, b=e)
    data = serde.dumps(e)
    assert len(data) < 10_000
    assert isinstance(serde.loads(data, ir.Bin), ir.Bin)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\x00\xff", b"null", b"[]", b"{}", b"{", b'"x"', b"PK\x03\x04 not a zip", b"[" * 100_000, b'{"tilelab": "Program"}',
        b'{"tilelab":"Program","version":99,"nodes":[],"root":null}',
        b'{"tilelab":"Program","version":1,"nodes":5,"root":null}',
        b'{"tilelab":"Program","version":1,"nodes":[1],"root":null}',
        b'{"tilelab":"Program","version":1,"nodes":[["Popen",{}]],"root":{"n":0}}',
        b'{"tilelab":"Program","version":1,"nodes":[["Const",{"dtype":"int32","value":1}]],"root":{"n":0}}',
        b'{"tilelab":"Program","version":1,"nodes":[["Const",{"dtype":1,"value":1}]],"root":{"n":0}}',
        b'{"tilelab":"Program","version":1,"nodes":[["Const",{"dtype":"int32"}]],"root":{"n":0}}',
        b'{"tilelab":"Program","version":1,"nodes":[["Const",{"dtype":"int32","value":1,"x":2}]],"root":{"n":0}}',
        b'{"tilelab":"Program","version":1,"nodes":[],"root":{"n":0}}',
        b'{"tilelab":"Program","version":1,"nodes":[],"root":{"n":true}}',
        b'{"tilelab":"Program","version":1,"nodes":[],"root":{"a":"x","dtype":"int8"}}',
        b'{"tilelab":"Program","version":1,"nodes":[],"root":{"zz":1}}',
        b'{"tilelab":"Program","version":1,"nodes":[],"root":{"d":[[{"d":[]},1]]}}',
        b'{"tilelab":"Program","version":1,"nodes":[["Program",{"name":"k","level":"tile","params":[],"body":[1]}]],"root":{"n":0}}',
        b'{"tilelab":"Program","version":1,"nodes":[["Program",{"name":"k","level":"sky","params":[],"body":[]}]],"root":{"n":0}}',
    ],
)
def test_hostile_input_is_an_input_error(data):
    with pytest.raises(InputError):
        serde.loads(data, ir.Program)


def test_mutilated_documents_are_input_errors_or_programs():
    rng = random.Random(0)
    data = serde.dumps(program())
    for _ in range(400):
        mutated = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            mutated[rng.randrange(len(mutated))] = rng.randrange(32, 127)
        try:
            found = serde.loads(bytes(mutated), ir.Program)
        except InputError:
            continue
        assert isinstance(found, ir.Program)


def test_pickles_in_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", record=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InputError):
        serde.load(tmp_path / "x.npz", Trace)


def test_what_is_not_plain_data_cannot_be_saved():
    with pytest.raises(InputError, match="a function cannot be saved"):
        serde.dumps(Finding(code="TL101", message="", evidence={"f": test_shared_parts_do_not_blow_up}))
    with pytest.raises(InputError, match="array of objects"):
        serde.dumps(Finding(code="TL101", message="", evidence={"f": np.array([object()])}))
