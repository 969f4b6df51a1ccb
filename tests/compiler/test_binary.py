"""PTX, SASS, registers and spills: what nvcc and nvdisasm say, read back; every line of machine code knows its line of CUDA."""

import shutil

import pytest
from cases import cases

import tilelab
from tilelab.compiler import binary
from tilelab.errors import EnvironmentLacks, InputError

CASES = {c.name: c for c in cases()}
PTX = """.version 9.0
.target sm_80
\t// .globl\tk
.visible .entry k(
\t.param .u64 k_param_0
)
{
\t.reg .b32 \t%r<4>;
\t.loc\t1 20 0
$L__func_begin0:

\tmov.u32 \t%r1, %tid.x;
\t.loc\t1 32 5
\t.loc\t2 23 3, function_name $L__info_string0, inlined_at 1 33 5
\tcp.async.cg.shared.global [%r1], [%r1], 16;
\t.loc\t4 151 3, function_name $L__info_string2, inlined_at 3 667 3
\tadd.s32 \t%r2, %r1, 1;
\tret;
}
\t.file\t1 "/somewhere/kernel.cu"
\t.file\t2 "/somewhere/copy.h"
\t.section\t.debug_str
"""
SASS = """
//--------------------- .text.k          --------------------------
\t.section\t.text.k,"ax",@progbits
.text.k:
\t//## File "/somewhere/kernel.cu", line 20
        /*0000*/                   MOV R1, c[0x0][0x28] ;
\t//## File "/somewhere/copy.h", line 8 inlined at "/somewhere/kernel.cu", line 33
\t//## File "/somewhere/kernel.cu", line 33
        /*0010*/                   S2R R2, SR_TID.X ;
.L_x_0:
        /*0020*/                   BRA `(.L_x_0);
"""


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILELAB_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def test_ptx_loses_its_directives_and_keeps_their_lines():
    text, lines = binary.read_ptx(PTX)
    told = dict(zip((line.strip() for line in text.splitlines()), lines, strict=True))
    assert "/somewhere" not in text
    assert told["cp.async.cg.shared.global [%r1], [%r1], 16;"] == 33
    assert [n for words, n in told.items() if words.startswith(("mov", "add", "ret"))] == [20, 33, 33]


def test_sass_is_instructions_and_labels():
    text, lines = binary.read_sass(SASS)
    assert text.splitlines() == [
        ".text.k",
        "    /*0000*/ MOV R1, c[0x0][0x28]",
        "    /*0010*/ S2R R2, SR_TID.X",
        ".L_x_0:",
        "    /*0020*/ BRA `(.L_x_0)",
    ]
    assert lines == (0, 20, 33, 0, 33)


def test_usage_is_told_by_kernel():
    said = """ptxas info    : Compiling entry function 'a' for 'sm_80'
    0 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 376 bytes cmem[0]
ptxas info    : Compiling entry function 'b' for 'sm_80'
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 16 registers"""
    assert binary.read_usage(said) == {"a": (255, 12), "b": (16, 0)}


def test_only_nvidia_targets_have_ptx():
    c = CASES["copy1d_128"]
    with pytest.raises(InputError, match="gfx942 has no PTX"):
        tilelab.lower(c.load(), target="gfx942", consts=c.consts, assemble=True)


def test_without_nvcc_the_way_to_get_it_is_told(monkeypatch):
    monkeypatch.setattr(binary, "tool", lambda name: None)
    c = CASES["copy1d_128"]
    with pytest.raises(EnvironmentLacks, match="nvcc"):
        tilelab.lower(c.load(), consts=c.consts, assemble=True)


if shutil.which("nvcc"):

    def test_a_real_kernel_is_assembled():
        c = CASES["copy1d_128"]
        a = tilelab.lower(c.load(), consts=c.consts, assemble=True)
        (r,) = a.resources.values()
        assert 4 <= r.registers <= 64
        assert r.spill_bytes == 0
        assert ".visible .entry" in a.ptx
        source, ptx = a.source.splitlines(), a.ptx.splitlines()
        assert len(a.lines["ptx"]) == len(ptx)
        loads = [source[a.lines["ptx"][k] - 1] for k, line in enumerate(ptx) if "ld.global" in line]
        assert loads
        assert all("=" in line for line in loads)
        assert tilelab.lower(c.load(), consts=c.consts) == a or tilelab.lower(c.load(), consts=c.consts).ptx == a.ptx  # from the cache
