"""Native runs: compile a Program with the installed toolchain and launch it on the CUDA device that is here."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilelab import ir
from tilelab.errors import EnvironmentLacks, InputError
from tilelab.finding import KernelRefused, finding

_NO_DEVICE = "use device='sim' (or `--device sim`), or run on a machine with an NVIDIA GPU and its driver"
_PACKED = ("float4_e2m1fn", "int4", "uint4")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Built:
    """A kernel compiled for the device that is here.

    Attributes:
        program: The Program that was compiled.
        target: Canonical target of the device, e.g. ``"sm_90a"``.
        kernel: TileLang's compiled kernel: called with torch tensors on the device, outputs left out.
        source: Generated CUDA source.
    """

    program: ir.Program
    target: str
    kernel: Any
    source: str

    def run(self, inputs: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """Launch once on copies of ``inputs`` (numpy arrays and numbers by parameter name) and return the outputs.

        Args:
            inputs: By parameter name; None for a tensor that is only written, which holds garbage at first.

        Returns:
            Written parameters by name and returned tensors as ``out0…``, as numpy arrays.

        Raises:
            InputError: An input is missing.
            KernelRefused: The device reports a failed launch (an illegal access, too much shared memory).
        """
        import torch

        args, tensors = [], {}
        for i, p in enumerate(self.program.params):
            if i in self.program.outputs:
                continue
            value = inputs.get(p.name)
            if value is None and p.name in inputs:
                value = _garbage(p.buffer)
            if value is None:
                raise InputError(f"{self.program.name} needs {p.name}")
            if p.buffer is None:
                args.append(value)
                continue
            tensors[p.name] = to_device(np.asarray(value), p.buffer)
            args.append(tensors[p.name])
        try:
            result = self.kernel(*args)
            torch.cuda.synchronize()
        except Exception as error:
            said = " ".join(str(error).split())[:300]
            raise KernelRefused(finding("TL702", f"the GPU reports: {said}.", fix="run it in the simulator, which says where.")) from error
        written = written_params(self.program)
        out = {n: to_host(t, self._buffer(n)) for n, t in tensors.items() if n in written}
        returned = result if isinstance(result, tuple | list) else () if result is None else (result,)
        for k, (i, t) in enumerate(zip(self.program.outputs, returned, strict=False)):
            out[f"out{k}"] = to_host(t, self.program.params[i].buffer)
        return out

    def _buffer(self, name: str) -> ir.Buffer | None:
        return next(p.buffer for p in self.program.params if p.name == name)


def device_target() -> str:
    """Return the canonical target of the current CUDA device.

    Raises:
        EnvironmentLacks: There is no CUDA device, or torch cannot use it.
    """
    from tilelab.machine import canonical_target

    try:
        import torch
    except ImportError as error:
        raise EnvironmentLacks(f"torch cannot be imported: {error}", fix="pip install torch") from None
    if not getattr(torch.version, "cuda", None):
        raise EnvironmentLacks("this torch is a build without CUDA", fix=_NO_DEVICE)
    if not torch.cuda.is_available():
        raise EnvironmentLacks("there is no CUDA device here", fix=_NO_DEVICE)
    major, minor = torch.cuda.get_device_capability()
    return canonical_target(f"sm_{major}{minor}")


def build(program: ir.Program) -> Built:
    """Compile ``program`` for the CUDA device that is here.

    Raises:
        EnvironmentLacks: There is no device, or no nvcc to compile with.
        KernelRefused: TileLang or nvcc refuses the kernel.
    """
    from tilelab.compiler import emit, loading
    from tilelab.compiler.targets import tvm_target

    target = device_target()
    if shutil.which("nvcc") is None and not _has_nvcc():
        raise EnvironmentLacks("there is no nvcc to compile CUDA with", fix="pip install 'tilelab[cuda]', or install the CUDA toolkit")
    with loading():
        import tilelang

        # Outputs, pass configuration and compiler flags stand among the function's attributes.
        kernel = tilelang.compile(emit(program), target=tvm_target(target)[1])
    return Built(program=program, target=target, kernel=kernel, source=str(kernel.get_kernel_source()))


def launch(program: ir.Program, inputs: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Compile ``program``, run it once on the device and return its outputs: see :meth:`Built.run`."""
    return build(program).run(inputs)


def _has_nvcc() -> bool:
    try:
        from tilelang.contrib.nvcc import find_cuda_path

        return bool(find_cuda_path())
    except Exception:
        return False


def written_params(program: ir.Program) -> frozenset[str]:
    """Return the names of the tensor parameters that the kernel may write."""
    written: set[ir.Var] = set()
    for n in ir.walk(program):
        if isinstance(n, ir.Store) or (isinstance(n, ir.Region) and "w" in n.access):
            written.add(n.buffer.data)
        elif isinstance(n, ir.Call) and n.op in ("tl.access_ptr", "tirx.address_of", "tirx.tvm_access_ptr"):
            written |= _pointed(n)
    return frozenset(p.name for p in program.params if p.buffer is not None and p.buffer.data in written)


def _garbage(buffer: ir.Buffer | None) -> np.ndarray[Any, Any] | None:
    """What a tensor holds before anything is written to it: bits that are NaN in a float; None where its shape is not known."""
    from tilelab.analysis.expr import const_int
    from tilelab.tensors import numpy_dtype

    shape = [const_int(e) for e in buffer.shape] if buffer is not None else [None]
    if buffer is None or None in shape:
        return None
    empty = np.empty([n or 0 for n in shape], numpy_dtype(buffer.dtype))
    empty.reshape(-1).view(np.uint8).fill(0xFF)
    return empty


def _pointed(call: ir.Call) -> set[ir.Var]:
    """The storage that a pointer may write; ``tl.access_ptr`` ends with its access: 1 reads, 2 writes."""
    access = call.args[-1]
    if call.op == "tl.access_ptr" and isinstance(access, ir.Const) and not int(access.value) & 2:
        return set()
    return {a.buffer.data for a in call.args if isinstance(a, ir.Load)} | {a for a in call.args if isinstance(a, ir.Var)}


def to_device(array: np.ndarray[Any, Any], buffer: ir.Buffer) -> Any:
    """Return a copy of ``array`` on the device with the strides that ``buffer`` declares; 4-bit dtypes are packed."""
    import torch

    from tilelab.tensors import to_torch

    if buffer.dtype in _PACKED:
        bits = np.ascontiguousarray(array).view(np.uint8) & 15
        packed = torch.from_numpy(bits[..., ::2] | bits[..., 1::2] << 4).cuda()
        kind = getattr(torch, "float4_e2m1fn_x2", None) if buffer.dtype == "float4_e2m1fn" else torch.int8
        return packed.view(kind) if kind is not None else packed
    strides = [e.value for e in buffer.strides if isinstance(e, ir.Const)]
    flat = to_torch(np.ascontiguousarray(array)).cuda()
    if len(strides) != array.ndim or tuple(strides) == tuple(flat.stride()):
        return flat.clone()
    out = torch.empty_strided(tuple(array.shape), [int(s) for s in strides], dtype=flat.dtype, device="cuda")
    return out.copy_(flat)


def to_host(tensor: Any, buffer: ir.Buffer | None) -> np.ndarray[Any, Any]:
    """Return a device tensor as a numpy array; 4-bit dtypes one element a byte."""
    import torch

    from tilelab.tensors import numpy_dtype, to_numpy

    if buffer is not None and buffer.dtype in _PACKED:
        packed = tensor.view(torch.uint8).cpu().numpy()
        bits = np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1)
        return bits.view(numpy_dtype(buffer.dtype))
    array: np.ndarray[Any, Any] = to_numpy(tensor)
    return array
