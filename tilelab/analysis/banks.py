"""Shared-memory banks: in how many passes a warp's usual accesses are served, for a layout as stored and row-major."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

import numpy as np

from tilelab.layout import BANK_BYTES, BANKS, Ints, Layout

WARP = 32


class Conflict(TypedDict):
    """Wavefronts that one warp's access takes, worst over the tile: row-major, as stored, and at best."""

    pattern: str
    before: int
    after: int
    ideal: int


def wavefronts(byte_addresses: Ints, lane_bytes: int) -> Ints:
    """Return how many passes a warp's shared-memory request takes: ``(requests, lanes)`` addresses → ``(requests,)``.

    A request of up to 4 bytes a lane is one phase, of 8 bytes two, of 16 bytes four; within a phase each bank serves one word
    at a time and a word read by several lanes is served once. (These rules give exactly the conflicts that an H200 counts for a
    32×32 column read.)
    """
    n, lanes = byte_addresses.shape
    words = max(1, lane_bytes // BANK_BYTES)
    phases = min(words, lanes)
    each = byte_addresses.reshape(n, phases, -1, 1) // BANK_BYTES + np.arange(words)
    word = np.sort(each.reshape(n * phases, -1), axis=1)
    fresh = np.ones(word.shape, dtype=np.int64)
    fresh[:, 1:] = word[:, 1:] != word[:, :-1]
    count = np.zeros((n * phases, BANKS), dtype=np.int64)
    np.add.at(count, (np.arange(n * phases)[:, None], word % BANKS), fresh)
    return np.asarray(count.max(axis=1).reshape(n, phases).sum(axis=1))


def conflicts(layout: Layout) -> list[Conflict]:
    """Return the worst wavefronts of usual accesses by one warp: row-major, as stored, and with no conflict at all."""
    if layout.bits < 8 or len(layout.shape) < 2:
        return []
    size = layout.bits // 8
    start = layout.offset_bytes or 0
    before = start + np.arange(layout.size, dtype=np.int64).reshape(layout.shape) * size
    after = layout.byte_addresses()
    out: list[Conflict] = []
    for pattern, take, lane_bytes in (("row", _rows, size), ("column", _columns, size), ("ldmatrix", _ldmatrix, 16)):
        lanes = [take(_plane(a), size) for a in (before, after)]
        if all(a.size for a in lanes):
            phases = 1 if pattern == "ldmatrix" else max(1, lane_bytes // BANK_BYTES)
            worst = [int(_passes(a, lane_bytes, pattern).max()) for a in lanes]
            out.append({"pattern": pattern, "before": worst[0], "after": worst[1], "ideal": phases})
    return out


def _passes(lanes: Ints, lane_bytes: int, pattern: str) -> Ints:
    if pattern == "ldmatrix":  # eight rows of 16 bytes are one phase by themselves
        words: Ints = (lanes[..., None] + 4 * np.arange(4)).reshape(len(lanes), -1)
        return wavefronts(words, 4)
    return wavefronts(lanes, lane_bytes)


def _plane(a: Ints) -> Ints:
    first: Ints = a.reshape(-1, *a.shape[-2:])[0]
    return first


def _rows(a: Ints, _size: int) -> Ints:
    columns = a.shape[1] // WARP * WARP
    return a[:, :columns].reshape(-1, WARP) if columns else a[:0]


def _columns(a: Ints, _size: int) -> Ints:
    rows = a.shape[0] // WARP * WARP
    return a[:rows].T.reshape(-1, WARP) if rows else a[:0]


def _ldmatrix(a: Ints, size: int) -> Ints:
    """Addresses of eight rows' 16-byte chunks, where the layout keeps chunks whole; nothing for other element sizes."""
    per = 16 // size
    rows, columns = a.shape[0] // 8 * 8, a.shape[1] // per * per
    if size > 2 or not rows or not columns:
        return a[:0]
    chunk = a[:rows, :columns].reshape(rows // 8, 8, columns // per, per)
    whole = (np.diff(chunk, axis=-1) == size).all() and (chunk[..., 0] % 16 == 0).all()
    return chunk[..., 0].transpose(0, 2, 1).reshape(-1, 8) if whole else a[:0]


def column_hits(layout: Layout) -> Mapping[str, Ints]:
    """Return how many of the lanes that read the first 32 rows of column 0 hit each bank, row-major and as stored."""
    if layout.bits < 8 or len(layout.shape) < 2 or layout.shape[-2] < WARP:
        return {}
    start, size = layout.offset_bytes or 0, layout.bits // 8
    before = start + np.arange(WARP, dtype=np.int64) * layout.shape[-1] * size
    after = _plane(layout.byte_addresses())[:WARP, 0]
    return {key: np.bincount(a // BANK_BYTES % BANKS, minlength=BANKS) for key, a in (("hits_before", before), ("hits", after))}
