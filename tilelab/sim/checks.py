"""What the simulator says when something is wrong: one function for each kind of mistake, in the learner's words."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilelab.finding import Finding, finding
from tilelab.ir import SourceLoc
from tilelab.sim.lanes import Frame, Value
from tilelab.sim.memory import Buf

_SCOPES = {"local.fragment": "fragment", "local.var": "variable", "local": "per-thread array", "global": "global tensor"}


def scope_word(scope: str) -> str:
    """How a learner calls the memory of ``scope``."""
    return _SCOPES.get(scope, "shared buffer" if scope.startswith("shared") else scope)


class Findings:
    """The findings of one run: at most ``limit`` for each code, line and buffer; the rest is counted."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._kept: dict[Any, list[dict[str, Any]]] = {}
        self._count: dict[Any, int] = {}

    def seen(self, key: Any) -> bool:
        """Count one more of ``key``; whether enough of them are kept already."""
        self._count[key] = self._count.get(key, 0) + 1
        return len(self._kept.get(key, ())) >= self.limit

    def add(self, key: Any, code: str, message: str, loc: SourceLoc | None, **fields: Any) -> None:
        """Keep a finding under ``key``."""
        fields["file"] = loc.file if loc else None
        fields["line"] = loc.line if loc else None
        if loc and loc.caller:
            fields.setdefault("evidence", {})
            fields["evidence"] = {**fields["evidence"], "called_from": {"file": loc.caller.file, "line": loc.caller.line}}
        self._kept.setdefault(key, []).append({"code": code, "message": message, **fields})

    def report(self, key: Any, code: str, message: str, loc: SourceLoc | None, **fields: Any) -> None:
        """Keep a finding unless enough of its kind are kept."""
        if not self.seen(key):
            self.add(key, code, message, loc, **fields)

    def drop(self, kind: str) -> None:
        """Forget the findings of one kind: another says more."""
        for key in [k for k in self._kept if k[0] == kind]:
            del self._kept[key]

    def done(self) -> tuple[Finding, ...]:
        """All findings, in the order of the source."""
        out = []
        for key, items in self._kept.items():
            for item in items:
                item = dict(item)
                item["evidence"] = {**item.get("evidence", {}), "times": self._count.get(key, 1)}
                out.append(finding(item.pop("code"), item.pop("message"), **item))
        order = {id(f): i for i, f in enumerate(out)}
        return tuple(sorted(out, key=lambda f: (f.file or "", f.line or 0, f.code, order[id(f)])))


class Place:
    """What a report needs of a place that is not an access."""

    def __init__(self, ctx: Any) -> None:
        self.ctx, self.loc = ctx, ctx.loc


def first_lane(bad: Value) -> tuple[int, ...]:
    """The first lane that is set."""
    bad = np.asarray(bad)
    return tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape)) if bad.ndim else ()


def element(name: str, index: list[Any]) -> str:
    """``name[i, j]``."""
    return f"{name}[{', '.join(str(i) for i in index)}]"


def where(acc: Any, fr: Frame, lane: tuple[int, ...]) -> dict[str, Any]:
    """Block, thread and loop indices of a lane."""
    return {
        "block": acc.ctx.block(fr, lane),
        "thread": acc.ctx.thread(lane),
        "indices": acc.ctx.indices(fr, lane),
    }


def out_of_bounds(acc: Any, fr: Frame, buf: Buf, bad: Value, *, write: bool) -> None:
    """TL101 (shared, fragment, local) or TL102 (global, where TileLang masks the access)."""
    key = ("bounds", buf.name, acc.loc and (acc.loc.file, acc.loc.line), write)
    findings = fr.run.findings
    if findings.seen(key):
        return
    lane = first_lane(bad)
    index = acc.at(fr, lane)
    outside = [d for d, (i, n) in enumerate(zip(index, buf.shape, strict=True)) if not 0 <= i < n] or [0]
    d = outside[0]
    what = element(buf.name, index)
    count = int(np.count_nonzero(bad))
    evidence = {
        "buffer": buf.name, "scope": buf.scope, "shape": list(buf.shape), "index": index, "axis": d, "lanes": count,
        "low": _extreme(acc, fr, bad, d, min), "high": _extreme(acc, fr, bad, d, max), "write": write,
    }  # fmt: skip
    at = where(acc, fr, lane)
    if not buf.is_global:
        low, high = evidence["low"], evidence["high"]
        span = f"element {low}" if low == high else f"elements {low}..{high}"
        findings.add(
            key, "TL101",
            f"{'writing' if write else 'reading'} {what} goes outside the {scope_word(buf.scope)} {buf.name}: "
            f"axis {d} has {buf.shape[d]} elements "
            f"(0..{buf.shape[d] - 1}), and {span} {'is' if low == high else 'are'} touched; nothing stops the device here.",
            acc.loc, fix=f"keep the index of axis {d} of {buf.name} below {buf.shape[d]}, or allocate {buf.name} larger",
            evidence=evidence, **at,
        )  # fmt: skip
        return
    from_data = any(acc.indices[i].loads for i in outside)
    if from_data and acc.what:  # a tile operation: its tail may pass the end, its first element should not
        first = acc.at(fr, (*lane[: acc.ctx.grid.rank], *(0,) * (len(lane) - acc.ctx.grid.rank)))
        from_data = any(not 0 <= first[i] < buf.shape[i] for i in outside)
    done = "the write is dropped" if write else f"the read gives {acc.safe:g}"
    where_from = " The index comes from data." if from_data else ""
    findings.add(
        key, "TL102",
        f"{what} lies outside {buf.name}, whose axis {d} has {buf.shape[d]} elements: {done} without a word "
        f"({count} {'lane' if count == 1 else 'lanes'} here).{where_from}",
        acc.loc, severity="warning" if from_data else "info", evidence=evidence,
        fix=(
            f"test the index before using it (0 <= index < {buf.shape[d]}) and say what a missing element means"
            if from_data
            else "nothing, if the tail is meant; else an if around the access; T.annotate_safe_value changes what masked reads give"
        ), **at,
    )  # fmt: skip


def _extreme(acc: Any, fr: Frame, bad: Value, d: int, choose: Any) -> int:
    from tilelab.sim.lanes import aff_values

    aff, ex = acc.dims[d]
    x = aff_values(aff, fr, acc.rank) if aff is not None else ex.fn(fr)
    if not isinstance(x, np.ndarray):
        return int(x)
    xs, bad = np.broadcast_arrays(x, bad)
    return int(choose(xs[bad].tolist()))


def uninitialised(acc: Any, fr: Frame, buf: Buf, bad: Value) -> None:
    """TL103."""
    key = ("uninit", buf.name, acc.loc and (acc.loc.file, acc.loc.line))
    if fr.run.findings.seen(key):
        return
    lane = first_lane(bad)
    index = acc.at(fr, lane)
    count = int(np.count_nonzero(bad))
    word = scope_word(buf.scope)
    if buf.flying:
        fr.run.findings.add(
            key, "TL204", f"{acc.what or 'this statement'} reads {element(buf.name, index)} while an asynchronous copy into {buf.name} "
            "is still under way.",
            acc.loc, fix="wait first (T.mbarrier_wait_parity on the barrier of the copy, or T.ptx_wait_group), and free a buffer "
            "only after its last read",
            evidence={"buffer": buf.name, "scope": buf.scope, "index": index, "elements": count}, **where(acc, fr, lane),
        )  # fmt: skip
        return
    whole = buf.init is None
    message = (
        f"{acc.what or 'this statement'} reads {element(buf.name, index)} before anything was written there: "
        + (f"nothing has been written to the {word} {buf.name} yet" if whole else f"the {word} {buf.name} is only partly written")
        + "; on a device it holds whatever was there before."
    )
    if buf.is_global:
        fix = f"write every element of {buf.name} before reading it, or pass it as an input"
    elif acc.what == "T.gemm":
        fix = f"T.clear({buf.name}) before the loop, or clear_accum=True"
    else:
        fix = f"T.clear({buf.name}), T.fill or T.copy into it first"
    fr.run.findings.add(
        key, "TL103", message, acc.loc, fix=fix,
        evidence={"buffer": buf.name, "scope": buf.scope, "shape": list(buf.shape), "index": index, "elements": count},
        **where(acc, fr, lane),
    )  # fmt: skip


def conflict(acc: Any, fr: Frame, buf: Buf, value: Value, mask: Value, axis: int) -> None:
    """TL201 where lanes along ``axis`` write different values to one element."""
    if mask is not None:
        shape = np.broadcast_shapes(value.shape, mask.shape)
        value, mask = np.broadcast_to(value, shape), np.broadcast_to(mask, shape)
        if value.dtype.kind == "f":
            low = np.where(mask, value, np.inf).min(axis=axis, keepdims=True)
            high = np.where(mask, value, -np.inf).max(axis=axis, keepdims=True)
            bad = (low < high) & (mask.sum(axis=axis, keepdims=True) > 1)
        else:
            first = np.take_along_axis(value, np.argmax(mask, axis=axis, keepdims=True), axis)
            bad = (mask & (value != first)).any(axis=axis, keepdims=True)
        bad = bad & mask if bad.any() else bad
    else:
        first = value.take([0], axis=axis)
        differ = value != first
        if value.dtype.kind == "f":
            differ &= ~(np.isnan(value) & np.isnan(first))
        bad = differ
    if bad.any():
        lane = first_lane(bad)
        race_many(acc, fr, buf, lane, axis)


def race_many(acc: Any, fr: Frame, buf: Buf, lane: tuple[int, ...], axis: int) -> None:
    """TL201: many lanes write one element."""
    key = ("race", buf.name, acc.loc and (acc.loc.file, acc.loc.line))
    if fr.run.findings.seen(key):
        return
    ctx = acc.ctx
    names = {a: n for n, a, _ in ctx.parallel}
    if axis in names:
        who, n = f"the {fr.size[axis]} parallel iterations of {names[axis]}", fr.size[axis]
    elif axis < len(ctx.grid.blocks):
        who, n = f"{fr.size[axis]} blocks", fr.size[axis]
    else:
        who, n = f"{fr.size[axis]} threads", fr.size[axis]
    index = acc.at(fr, lane)
    fr.run.findings.add(
        key, "TL201",
        f"{who} all write {element(buf.name, index)}, with different values and in no order: the last one wins, and which "
        "that is changes from run to run.",
        acc.loc,
        fix="T.atomic_add for a sum over a global tensor, or reduce in a fragment with T.reduce_sum and write once",
        evidence={"buffer": buf.name, "scope": buf.scope, "index": index, "writers": n, "kind": "write-write"}, **where(acc, fr, lane),
    )  # fmt: skip


def race(
    acc: Any, fr: Frame, buf: Buf, lane: tuple[int, ...], kind: str, who: str, other: dict[str, Any], fix: str, severity: str = "error"
) -> None:
    """TL201 between two lanes (``other`` describes the one that came first)."""
    key = ("race", buf.name, acc.loc and (acc.loc.file, acc.loc.line))
    if fr.run.findings.seen(key):
        return
    index = acc.at(fr, lane)
    what = element(buf.name, index)
    same = " (the same value)" if severity != "error" else ""
    said = f"several {who} write {what}{same}" if kind == "write-write" else f"{what} is written by one and read by another of the {who}"
    fr.run.findings.add(
        key, "TL201",
        f"{said}, with nothing that orders them.",
        acc.loc, fix=fix, severity=severity,
        evidence={"buffer": buf.name, "scope": buf.scope, "index": index, "kind": kind, "other": other}, **where(acc, fr, lane),
    )  # fmt: skip
