"""The README's table of kernels is what the records say."""

import json
from pathlib import Path

import pytest

from tilelab.bench import gpu, table
from tilelab.errors import InputError

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_readme_holds_what_the_records_say():
    text = README.read_text(encoding="utf-8")
    assert table.placed(text) == text, "run: python -m tilelab.bench.table README.md"


def test_families_are_those_of_the_bench():
    assert set(table.NAMES) <= set(gpu.FAMILIES)


def test_a_line_is_worked_out_from_its_rows(tmp_path):
    def row(ratio, speed):
        return {"family": "gemm", "name": "x", "rival": "cublas", "ratio": ratio, "tflop_s": speed, "tb_s": 1.0}

    broken = {"family": "gemm", "name": "y", "rival": "cublas", "failed": "error 1 is over the bound 0.1"}
    environment = {"device": "GPU", "date": "2026-01-02"}
    record = {"schema": "tilelab.bench.gpu", "environment": environment, "rows": [row(0.5, 700.0), row(2.0, 650.0), broken]}
    (tmp_path / "a.json").write_text(json.dumps(record), encoding="utf-8")
    (tmp_path / "b.json").write_text('{"schema": "other"}', encoding="utf-8")
    assert "| GEMM bfloat16 (`kernels.gemm`) | cublas | 2 | 1.00 | 0.50 | 700 TFLOP/s |" in table.table(tmp_path)
    assert "Measured on GPU, 2026-01-02" in table.table(tmp_path)


def test_a_file_without_marks_is_refused():
    with pytest.raises(InputError, match="must hold the lines"):
        table.placed("# Nothing here")
