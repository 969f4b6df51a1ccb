"""The JSON that commands print: strict, with tensors described by shape, dtype and hash."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilelab.trace import PrintRecord


def plain(value: Any) -> Any:
    """Make ``value`` strict JSON: numpy numbers become Python's, and NaN and infinities strings."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def describe_output(array: Any) -> dict[str, Any]:
    """Return shape, dtype and the SHA-256 of the C-order bytes."""
    import numpy as np

    return {
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "sha256": hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest(),
    }


def print_json(record: PrintRecord, files: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the JSON object of one executed ``T.print``; ``files`` maps file names to what the user typed."""
    import numpy as np

    values = np.asarray(record.values)
    file = record.loc.file if record.loc else None
    return {
        "message": record.message,
        "name": record.name,
        "dtype": record.dtype,
        "shape": list(values.shape),
        "values": values.astype(values.dtype if values.dtype.kind in "iub" else np.float64).tolist(),
        "file": (files or {}).get(file or "", file),
        "line": record.loc.line if record.loc else None,
        "block": list(record.block),
        "thread": list(record.thread) if record.thread else None,
        "loops": dict(record.loops),
    }
