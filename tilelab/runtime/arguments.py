"""What a launch may be given: the checks that TileLang's own host code makes, told in plain words."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from tilelab import ir
from tilelab.errors import InputError
from tilelab.runtime.devices import is_marked
from tilelab.tensors import bind, evaluated, inputs_of, numpy_dtype, pointer_tables

_PACKED = ("float4", "int4", "uint4")
_said = False


class ArgumentRefused(InputError, RuntimeError):
    """An argument does not fit the kernel; a RuntimeError as well, since that is what TileLang raises on a GPU."""


def bound(program: ir.Program, args: tuple[Any, ...], used: frozenset[str]) -> Mapping[str, Any]:
    """Return the inputs of a launch by name; ``used`` are the parameters for which None will not do (:func:`used_params`).

    Raises:
        ArgumentRefused: A shape, dtype or stride is not what the kernel declares.
    """
    for param, value in zip(inputs_of(program), args, strict=True):
        if value is None and param.name in used:
            raise ArgumentRefused(f"{param.name} is None, and {program.name} uses it", fix="pass a tensor as it is declared")
    sizes: dict[str, Any] = {}
    unpacked_args = tuple(unpacked(p, a) for p, a in zip(inputs_of(program), args, strict=True))
    try:
        values = bind(program, unpacked_args, {}, sizes=sizes)
    except InputError as error:
        raise ArgumentRefused(error.message, fix=error.fix) from None
    for param, value in zip(inputs_of(program), args, strict=True):
        if isinstance(value, torch.Tensor) and param.buffer is not None:
            _check_strides(param, value, sizes)
            _notice_device(param, value)
    return values


def unpacked(param: ir.Param, value: Any) -> Any:
    """Return a tensor of bytes that hold two elements each, as torch has types of 4 bits, with one element a byte; others as they are."""
    if (
        param.buffer is None
        or not param.buffer.dtype.startswith(_PACKED)
        or not isinstance(value, torch.Tensor)
        or value.element_size() != 1
    ):
        return value
    if not value.ndim:
        return value
    pairs = value.detach().view(torch.uint8).numpy()
    both = np.stack([pairs & 15, pairs >> 4], axis=-1).reshape(*pairs.shape[:-1], -1)
    if param.buffer.dtype.startswith("int4"):
        return (
            (both.astype(np.int8) ^ 8) - 8
            if numpy_dtype("int4") == np.int8
            else ((both ^ 8) - 8).astype(np.int8).astype(numpy_dtype("int4"))
        )
    return both.view(numpy_dtype("float4_e2m1fn")) if param.buffer.dtype.startswith("float4") else both.astype(numpy_dtype("uint4"))


def packed(array: Any) -> Any:
    """Return an array of 4-bit elements as bytes of two; others as they are."""
    if not str(array.dtype).startswith(_PACKED) or not array.ndim or array.shape[-1] % 2:
        return array
    bits = np.ascontiguousarray(array).view(np.uint8) & 15
    return bits[..., 0::2] | (bits[..., 1::2] << 4)


def pointed(program: ir.Program, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments with tensors in the place of their addresses: an address for a tensor, a tensor of them for a table.

    Raises:
        ArgumentRefused: No tensor of this process lies at an address.
    """
    tables = pointer_tables(program)
    params = inputs_of(program)
    wanted = [
        i for i, (p, a) in enumerate(zip(params, args, strict=True))
        if p.buffer is not None and (type(a) is int or (p.name in tables and isinstance(a, torch.Tensor)))
    ]  # fmt: skip
    if not wanted:
        return args
    alive: dict[int, torch.Tensor] = {}
    for thing in gc.get_objects():
        if issubclass(type(thing), torch.Tensor) and thing.numel() >= getattr(alive.get(thing.data_ptr()), "numel", int)():
            alive[thing.data_ptr()] = thing
    out = list(args)
    for i in wanted:
        name = params[i].name
        out[i] = _at(alive, args[i], name) if type(args[i]) is int else tuple(_at(alive, a, name) for a in args[i].reshape(-1).tolist())
    return tuple(out)


def _at(alive: Mapping[int, torch.Tensor], address: int, name: str) -> torch.Tensor:
    if address not in alive:
        raise ArgumentRefused(f"{name} holds the address {address:#x}, at which no tensor begins", fix="keep the tensors alive")
    return alive[address]


def used_params(program: ir.Program) -> frozenset[str]:
    """Return the names of the parameters that the kernel reads or writes."""
    by_data = {p.buffer.data: p.name for p in program.params if p.buffer is not None}
    used: set[str] = set()
    for node in ir.walk(program):
        if isinstance(node, ir.Var):
            used.add(by_data.get(node, ""))
        elif not isinstance(node, ir.Param) and isinstance(getattr(node, "buffer", None), ir.Buffer):
            used.add(by_data.get(node.buffer.data, ""))
    return frozenset(used - {""})


def _check_strides(param: ir.Param, tensor: torch.Tensor, sizes: Mapping[str, Any]) -> None:
    """TileLang takes strides as declared, those of C order unless T.StridedTensor says otherwise; of an axis of one element, any."""
    assert param.buffer is not None
    halves = param.buffer.dtype.startswith(_PACKED)  # torch counts bytes there
    declared = [evaluated(e, sizes) for e in param.buffer.strides]
    if halves and any(not isinstance(s, int) for s in declared):
        return
    declared = [] if halves else declared
    wanted = declared or _c_order(tensor.shape)
    for want, has, n in zip(wanted, tensor.stride(), tensor.shape, strict=True):
        if n > 1 and isinstance(want, int) and want != has:
            strides = ", ".join(str(w) if isinstance(w, int) else "?" for w in wanted)
            raise ArgumentRefused(
                f"{param.name} is declared with strides ({strides}), a tensor with strides {tuple(tensor.stride())} was given",
                fix=f"pass {param.name}.contiguous(), or declare it by T.StridedTensor with its strides",
            )


def _c_order(shape: torch.Size) -> list[int]:
    strides = [1]
    for n in reversed(shape[1:]):
        strides.insert(0, strides[0] * n)
    return strides[: len(shape)]


def _notice_device(param: ir.Param, tensor: torch.Tensor) -> None:
    """Say once that a GPU would refuse a tensor of the CPU."""
    global _said
    if not _said and not is_marked(tensor):
        _said = True
        print(f'tilelab: {param.name} is on the CPU: on a GPU, TileLang refuses it. Make it with device="cuda"', file=sys.stderr)
