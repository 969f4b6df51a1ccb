"""The debugger: a session that moves through a recorded Trace, in both directions of time."""

from __future__ import annotations

from typing import Any

from tilelab.debugger.session import Session

__all__ = ["Session", "debug"]


def debug(
    kernel: Any, *tensors: Any, block: tuple[int, ...] = (0, 0, 0), level: str = "tile", params: Any = None, consts: Any = None
) -> Session:
    """Simulate ``kernel`` recording one block and return a session at its first step.

    Args:
        kernel: A TileLang kernel, or a Program.
        tensors: Inputs, torch or numpy.
        block: The block to record, as (x[, y[, z]]).
        level: ``"tile"`` or ``"thread"``.
        params: Further :class:`tilelab.SimParams`; ``record_blocks`` is set from ``block``.
        consts: Values of ``T.const`` names and dynamic sizes.

    Raises:
        InputError: An input does not fit, or the grid has no such block.
        KernelRefused: TileLang refuses the kernel.
    """
    from dataclasses import replace

    from tilelab import api
    from tilelab.trace import SimParams

    x, y, z = (*block, 0, 0)[:3]
    recording = replace(params or SimParams(), record_blocks=((x, y, z),))
    program = api.program_of(kernel, *tensors, consts=consts)
    inputs = api.arguments(kernel, program, tensors, consts or {}, recording.seed)
    api.check_block(program, (x, y, z), inputs)
    return Session(api.run(program, inputs, level=level, params=api.canonical(recording)), block=(x, y, z))
