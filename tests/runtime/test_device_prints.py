"""What a GPU prints becomes the records that the simulator makes: lines as TileLang's debug.h formats them, through a real descriptor 1."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tilelab.runtime.device_prints import DTYPES, captured_prints, parse, watch_cells


def who(block=(0, 0, 0), thread=(0, 0, 0)):
    return f"BlockIdx=({', '.join(map(str, block))}), ThreadIdx=({', '.join(map(str, thread))})"


def var(message, ctype, value, **at):
    return f"msg='{message}' {who(**at)}: dtype={ctype} value={value}\n"


def element(message, buffer, index, ctype, value, **at):
    return f"msg='{message}' {who(**at)}: buffer={buffer}, index={index}, dtype={ctype} value={value}\n"


def test_an_expression_keeps_its_dtype_block_and_thread():
    (r,), rest = parse(var("x is", "half_t", "0.500000", block=(1, 2, 3), thread=(4, 5, 6)))
    assert (r.message, r.name, r.dtype, r.block, r.thread) == ("x is", "", "float16", (1, 2, 3), (4, 5, 6))
    assert r.values.shape == ()
    assert float(r.values) == 0.5
    assert rest == ""


@pytest.mark.parametrize(
    ("ctype", "text", "value"),
    [
        ("bool", "true", True), ("char", "-3", -3), ("unsigned char", "250", 250), ("uint", "4294967295", 4294967295),
        ("long long", "-9223372036854775808", -(2**63)), ("ulong", "18446744073709551615", 2**64 - 1), ("double", "1.500000", 1.5),
        ("bfloat16_t", "inf", np.inf), ("fp8_e5_t", "-nan", np.nan), ("pointer", "0x7f00", 0x7F00), ("unknown", "0x10", 16),
        ("pointer", "(nil)", 0),
    ],
)  # fmt: skip
def test_every_type_is_read(ctype, text, value):
    (r,), _ = parse(var("m", ctype, text))
    np.testing.assert_equal(r.values.item(), value)


def test_every_type_that_the_templates_print_is_known():
    import tilelang

    text = (Path(tilelang.__file__).parent / "src/tl_templates/cuda/debug.h").read_text()
    named = set(re.findall(r'DEFINE_PRINT_TRAIT\([^,]+, "([^"]+)"', text)) | set(re.findall(r"dtype=(\w+)", text))
    assert len(named) > 15
    assert named - {"unknown"} <= set(DTYPES)


def test_a_buffer_is_one_array_and_a_second_print_another():
    text = "".join(element("", "A", i, "float", f"{i}.000000") for _ in range(2) for i in range(4))
    one, two = parse(text)[0]
    assert one.values.tolist() == two.values.tolist() == [0, 1, 2, 3]
    assert (one.name, one.dtype, one.thread) == ("A", "float32", None)


def test_threads_that_print_the_same_buffer_are_one_record_a_block():
    """128 threads of 4 blocks, their lines mixed as a warp's are, give four records and not 131,072 lines."""
    text = "".join(
        element("", "A", i, "int", i * 10 + b, block=(b, 0, 0), thread=(t, 0, 0)) for b in range(4) for i in range(8) for t in range(128)
    )
    records, _ = parse(text)
    assert [r.block for r in records] == [(b, 0, 0) for b in range(4)]
    assert [r.values.tolist() for r in records] == [[i * 10 + b for i in range(8)] for b in range(4)]


def test_threads_with_buffers_of_their_own_stay_apart():
    text = "".join(element("", "acc", i, "int", i + t, thread=(t, 0, 0)) for i in range(2) for t in range(3))
    records, _ = parse(text)
    assert [(r.thread, r.values.tolist()) for r in records] == [((t, 0, 0), [t, t + 1]) for t in range(3)]


def test_an_expression_of_many_threads_is_one_record_in_thread_order():
    threads = [(x, y, 0) for y in range(2) for x in range(32)]
    shuffled = [threads[i] for i in np.random.default_rng(0).permutation(64)]
    (r,), _ = parse("".join(var("t", "int", x + 100 * y, thread=(x, y, z)) for x, y, z in shuffled))
    assert r.thread is None
    assert r.values.shape == (2, 32)
    assert r.values[1, 5] == 105
    few, _ = parse("".join(var("t", "int", t, thread=(t, 0, 0)) for t in range(4)))
    assert [(p.thread, int(p.values)) for p in few] == [((t, 0, 0), t) for t in range(4)]


def test_lost_lines_are_masked():
    text = "".join(element("", "A", i, "float", f"{i}.000000") for i in (2, 3, 5))
    (r,), _ = parse(text)
    assert np.ma.getmaskarray(r.values).tolist() == [True, True, False, False, True, False]
    assert r.values[5] == 5


def test_messages_may_hold_quotes_and_lines_and_other_output_is_left():
    text = "hello\n" + f"msg='it's\ntwo lines' {who()}\n" + "between\n" + var("it's", "int", 3) + "end"
    records, rest = parse(text)
    assert [r.message for r in records] == ["it's\ntwo lines", "it's"]
    assert records[0].values.size == 0
    assert rest == "hello\nbetween\nend"


def test_the_program_gives_lines_shapes_and_dtypes():
    import tilelab

    program = tilelab.capture(kernel)
    text = element("", "A", 0, "float", "0.000000") + "".join(element("", "A", i, "float", f"{i}.000000") for i in range(1, 6))
    text += var("total", "float", "2.500000")
    buffer, total = parse(text, program)[0]
    assert buffer.values.shape == (2, 3)
    assert buffer.values[1, 2] == 5
    here = Path(__file__).read_text().splitlines()
    assert "T.print(A)" in here[buffer.loc.line - 1]
    assert 'msg="total"' in here[total.loc.line - 1]
    assert total.dtype == "float32"


def test_the_simulator_makes_the_same_records():
    import tilelab

    A = np.arange(6, dtype=np.float32).reshape(2, 3)
    simulated = tilelab.simulate(kernel, A).prints
    text = "".join(
        element("", "A", i, "float", f"{i}.000000", block=(b, 0, 0), thread=(t, 0, 0))
        for b in range(2)
        for i in range(6)
        for t in range(32)
    )
    text += "".join(var("total", "float", f"{5 + b}.000000", block=(b, 0, 0), thread=(t, 0, 0)) for b in range(2) for t in range(32))
    printed, _ = parse(text, tilelab.capture(kernel))
    assert [(p.name, p.block, p.dtype, np.asarray(p.values).tolist()) for p in simulated if p.name] == [
        (p.name, p.block, p.dtype, p.values.tolist()) for p in printed if p.name
    ]


def kernel():
    import tilelang.language as T

    @T.prim_func
    def k(A: T.Tensor((2, 3), "float32")):
        with T.Kernel(2, threads=32) as bx:
            T.print(A)
            T.print(A[1, 2] + T.cast(bx, "float32"), msg="total")

    return k


def test_descriptor_one_is_captured_and_given_back(capfd):
    """What C writes to descriptor 1 becomes records; what Python prints, and what is no print, still reaches standard output."""
    with captured_prints() as seen:
        os.write(1, var("x", "int", 7).encode())
        os.write(1, b"not a print\n")
        print("from Python", flush=True)
        assert seen.records == ()
    os.write(1, b"after\n")
    assert [int(r.values) for r in seen.records] == [7]
    assert seen.lost == ""
    assert seen.trace().prints == seen.records
    out = capfd.readouterr().out
    assert sorted(out.split("\n")) == ["", "after", "from Python", "not a print"]


def test_it_ends_well_when_the_kernel_fails(capfd):
    seen = []

    def failing():
        with captured_prints() as prints:
            seen.append(prints)
            os.write(1, var("x", "int", 1).encode())
            raise RuntimeError("launch failed")

    with pytest.raises(RuntimeError, match="launch"):
        failing()
    assert len(seen[0].records) == 1
    os.write(1, b"still there\n")
    assert "still there" in capfd.readouterr().out


def test_c_buffers_are_flushed():
    """The driver writes through C's stdout, which is buffered when it is no terminal."""
    code = (
        "import ctypes; from tilelab.runtime.device_prints import captured_prints\n"
        "libc = ctypes.CDLL(None)\n"
        "with captured_prints() as seen:\n"
        f"    libc.printf(b{var('x', 'int', 9)!r})\n"
        "print(len(seen.records), int(seen.records[0].values))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1 9\n"


def test_each_cell_of_a_notebook_shows_its_prints(capfd):
    class Events(dict):
        register = dict.__setitem__

    class Shell:
        events = Events()

    watch_cells(Shell)
    Shell.events["post_run_cell"](None)  # of the cell that switched it on
    Shell.events["pre_run_cell"](None)
    os.write(1, "".join(var("x is", "int", i, block=(i, 0, 0)) for i in range(60)).encode())
    Shell.events["post_run_cell"](None)
    lines = capfd.readouterr().out.splitlines()
    assert lines[3] == "[block=(3, 0, 0) thread=(0, 0, 0)] x is: 3 (int32)"
    assert len(lines) == 51
    assert "10 more" in lines[-1]
