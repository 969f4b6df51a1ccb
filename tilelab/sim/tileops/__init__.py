"""Tile operations: a table from the operation to the function that compiles it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelab import ir
from tilelab.sim.context import Context
from tilelab.sim.flow import Op
from tilelab.sim.tileops import atomics, data, gemm, reduce, scaled, scan

Maker = Callable[[Any, ir.Tile, Context], Op]

#: Tile operation → its compiler.
TABLE: dict[str, Maker] = {**data.TABLE, **gemm.TABLE, **scaled.TABLE, **reduce.TABLE, **atomics.TABLE, **scan.TABLE}
#: Call → compiler of its value, for those that work on tiles.
CALLS = {**atomics.CALLS, **scan.CALLS}
#: Call → compiler of its effect, likewise.
EFFECTS = scaled.EFFECTS
