"""The coverage table: every name of ``tilelang.language`` and every registered operation → done, refused or no operation.

``python tests/coverage/table.py`` (or ``pytest tests/coverage --update-golden``) writes ``coverage.json`` and ``COVERAGE.md``
from the installed package.
"""

import ast
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
for place in (HERE, ROOT):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

import names  # noqa: E402
import snippet  # noqa: E402

DONE, REFUSED, NONE, TODO = "done", "refused", "not an operation", "todo"


def build() -> dict[str, Any]:
    """The table, from the installed package."""
    import tilelang

    return {"tilelang": tilelang.__version__, "names": of_names(), "operations": of_operations(), "nodes": of_nodes()}


# ------------------------------------------------------------------------------------------------ names
def of_names() -> dict[str, dict[str, Any]]:
    """Name of ``T`` → status, the reason or what it is, and who uses it."""
    import tilelang.language as T

    return {name: _name(name, getattr(T, name), uses().get(name, ())) for name in sorted(T.__all__)}


def _name(name: str, value: Any, used_by: Any) -> dict[str, Any]:
    if is_dtype(name, value):
        return _dtype(name, value)
    if used_by:
        return {"status": DONE, "by": sorted(used_by)[:3]}
    if names.refused(name):
        return {"status": REFUSED, "why": names.refused(name)}
    if names.no_operation(name):
        return {"status": NONE, "why": names.no_operation(name)}
    return {"status": TODO, "why": "nobody has looked at it yet"}


def is_dtype(name: str, value: Any) -> bool:
    """Whether a name of ``T`` is a dtype: some are functions (``T.bfloat16x4``)."""
    return type(value).__name__ == "dtype" or re.fullmatch(r"bfloat16x\d+", name) is not None


def _dtype(name: str, value: Any) -> dict[str, Any]:
    """A dtype is done where the simulator holds its values and a snippet moves some (of one lane; vectors are of such)."""
    from tilelab.sim import dtypes

    text = name if callable(value) and type(value).__name__ != "dtype" else str(value)
    try:
        base = dtypes.parse(text)[0]
        dtypes.info(base)
    except Exception:
        return {"status": REFUSED, "why": "a storage format of which the simulator holds no values"}
    by = sorted(uses().get(base, ()) or uses().get(name, ()))[:3]
    return {"status": DONE, "by": by} if by else {"status": TODO, "why": f"no snippet holds {base}"}


def uses() -> dict[str, set[str]]:
    """Name of ``T`` → the snippets and kernels of the corpus whose results are compared with numpy."""
    if not _USES:
        for s in snippet.snippets().values():
            for name in (*s.names, *s.dtypes):
                _USES.setdefault(name, set()).add(f"snippets/{s.name}")
        corpus = ROOT / "tests" / "corpus"
        in_corpus = {line.split('"')[1] for line in (corpus / "corpus.toml").read_text().splitlines() if line.startswith("kernel = ")}
        for path in sorted((corpus / "kernels").glob("*.py")):
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.FunctionDef) and node.name in in_corpus:
                    for name in snippet.names_in(node):
                        _USES.setdefault(name, set()).add(f"corpus/{path.stem}.{node.name}")
    return _USES


_USES: dict[str, set[str]] = {}


# ------------------------------------------------------------------------------------------------ operations
def of_operations() -> dict[str, dict[str, str]]:
    """Registered operation → status, and why it is refused."""
    from tilelang import tvm

    from tilelab.sim.refused import why

    handled = simulated()
    out = {}
    for op in sorted(str(n) for n in tvm.ir.Op.list_op_names()):
        if op.startswith(("tl.", "tirx.")):
            reason = why(op)
            out[op] = {"status": DONE} if op in handled else {"status": REFUSED, "why": reason} if reason else {"status": TODO}
    return out


def simulated() -> set[str]:
    """The operations that the simulator's tables hold."""
    from tilelab.sim import intrinsics
    from tilelab.sim.kernel import Compiler
    from tilelab.sim.tileops import TABLE

    lazily = {"tirx.if_then_else"}
    return {*Compiler.calls, *Compiler.effects, *(f"tl.tileop.{k}" for k in TABLE), *intrinsics.PURE, *intrinsics.TYPED, *lazily}


# ------------------------------------------------------------------------------------------------ nodes
def of_nodes() -> dict[str, dict[str, str]]:
    """Class of TVM's expressions and statements → whether a Program can hold it."""
    import tvm.tirx.expr
    import tvm.tirx.stmt
    from tvm.ir import PrimExpr

    from tilelab.compiler.reader import BINARY, Reader
    from tilelab.compiler.statements import _STATEMENTS

    read = {*BINARY, *Reader()._readers, *_STATEMENTS, "SeqStmt"}
    base = {
        "BinaryOpExpr", "CmpExpr", "ConstExpr", "LogicalExpr", "PrimExpr", "PrimExprWithOp", "Stmt",
    }  # fmt: skip
    found = {}
    for module, kind in ((tvm.tirx.expr, PrimExpr), (tvm.tirx.stmt, tvm.tirx.stmt.Stmt)):
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, kind) and name not in base:
                found[name] = {"status": DONE} if name in read else {"status": REFUSED, "why": names.refused(name)}
    return dict(sorted(found.items()))


# ------------------------------------------------------------------------------------------------ files
def markdown(table: dict[str, Any]) -> str:
    """The table for people."""
    lines = [
        "# What of TileLang is simulated at tile level",
        "",
        f"Generated from tilelang {table['tilelang']} by `python tests/coverage/table.py`. A name is *done* where a snippet or a kernel of the",
        "corpus uses it and its result agrees with numpy; what is refused is refused by name (TL703), with this reason.",
        "",
    ]
    for title, part in (
        ("`tilelang.language`", table["names"]),
        ("Operations", table["operations"]),
        ("Kinds of nodes", table["nodes"]),
    ):
        counts = Counter(e["status"] for e in part.values())
        lines += [f"## {title}", "", ", ".join(f"{n} {status}" for status, n in sorted(counts.items())), ""]
        groups: dict[tuple[str, str], list[str]] = {}
        for name, entry in part.items():
            groups.setdefault((entry["status"], entry.get("why", "")), []).append(f"`{name}`")
        for (status, reason), members in sorted(groups.items()):
            lines += [f"**{status}**{f': {reason}' if reason else ''}  ", " ".join(members), ""]
    return "\n".join(lines)


def write(table: dict[str, Any]) -> None:
    """Write coverage.json and COVERAGE.md."""
    (HERE / "coverage.json").write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (HERE / "COVERAGE.md").write_text(markdown(table), encoding="utf-8")


if __name__ == "__main__":
    write(build())
