"""Frames between the grader and its helpers: a tag, a length and bytes. Everything read from a submission is untrusted."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

_HEAD = struct.Struct(">4scI")
_MAGIC = b"TLAB"

GUARDS, PROGRAM, REFUSED, ERROR, END, FACTS = b"G", b"P", b"R", b"E", b"Z", b"F"
TAGS = frozenset((GUARDS, PROGRAM, REFUSED, ERROR, END, FACTS))


class Garbled(Exception):
    """The bytes are no sequence of frames."""


def frame(tag: bytes, payload: bytes | dict[str, Any] | list[Any] = b"") -> bytes:
    """Return one frame; a dict or list is sent as JSON."""
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return _HEAD.pack(_MAGIC, tag, len(body)) + body


def parse(data: bytes) -> list[tuple[bytes, bytes]]:
    """Split ``data`` into frames.

    Raises:
        Garbled: Anything but whole frames of known tags.
    """
    frames, at = [], 0
    while at < len(data):
        if at + _HEAD.size > len(data):
            raise Garbled("a frame is cut short")
        magic, tag, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        if magic != _MAGIC or tag not in TAGS or at + size > len(data):
            raise Garbled("bytes that are no frame")
        frames.append((tag, data[at : at + size]))
        at += size
    return frames


def send(write: Callable[[bytes], Any], message: dict[str, Any], blobs: tuple[bytes, ...] = ()) -> None:
    """Write a JSON message and its blobs (between the grader and its own fork server)."""
    head = json.dumps({**message, "blobs": [len(b) for b in blobs]}).encode()
    write(struct.pack(">I", len(head)) + head + b"".join(blobs))


def receive(read: Callable[[int], bytes]) -> tuple[dict[str, Any], tuple[bytes, ...]] | None:
    """Read what :func:`send` wrote; None at the end of the stream. ``read(n)`` returns exactly n bytes or fewer at the end."""
    head = read(4)
    if len(head) < 4:
        return None
    body = read(struct.unpack(">I", head)[0])
    message: dict[str, Any] = json.loads(body)
    blobs = tuple(read(n) for n in message.pop("blobs"))
    return message, blobs
