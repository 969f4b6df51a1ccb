"""Tensors that say they are on ``cuda`` and live on the CPU.

A torch function mode rewrites every request for a cuda device to the CPU and marks what comes out; what is computed from
marked tensors is marked too. ``x.device`` and ``x.is_cuda`` answer from the mark, so a script's own checks hold.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _device as _torch_device

_MARK = "_tilelab_cuda"
_CPU = torch.device("cpu")
_CUDA = torch.device("cuda", 0)
_default_cuda = False


def mark(value: Any) -> Any:
    """Mark the tensors in ``value`` (a tensor, or a tuple or list of them) as being on cuda; returns ``value``."""
    for tensor in _tensors(value):
        setattr(tensor, _MARK, True)
    return value


def is_marked(tensor: Any) -> bool:
    """Say whether a tensor counts as being on cuda."""
    return getattr(tensor, _MARK, False) is True


class CudaOnCpu(TorchFunctionMode):  # type: ignore[misc]
    """The mode; enter it once in each thread (:func:`everywhere` sees to new ones)."""

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """Answer one torch call."""
        return answer(func, args, dict(kwargs or {}))


def answer(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call ``func`` with cuda rewritten to the CPU, and mark its result where it would be on cuda."""
    special = _special().get(func)
    if special is not None:
        return special(func, args, kwargs)
    name = getattr(func, "__name__", "")
    if name == "__get__":
        return _property(func, args)
    if name == "__set__":
        return _assign(func, args)
    if "pin_memory" in kwargs:
        kwargs["pin_memory"] = False
    asked = kwargs.get("device")
    explicit = asked is not None
    if explicit and _is_cuda(asked):
        kwargs["device"] = _CPU
        out = func(*args, **kwargs)
        return mark(_apart(out, args, func))
    out = func(*args, **kwargs)
    if explicit:
        return out
    if any(map(is_marked, _tensors(args))) or any(map(is_marked, _tensors(kwargs.values()))) or (_default_cuda and _makes_tensors(func)):
        mark(out)
    return out


def _apart(out: Any, args: Iterable[Any], func: Any) -> Any:
    """A tensor that goes to the GPU is a new tensor: never the CPU one itself, nor a view of a numpy array."""
    shares = getattr(func, "__name__", "") in ("as_tensor", "asarray")
    same = any(out is a and not is_marked(a) for a in _tensors(args))
    return out.clone() if isinstance(out, torch.Tensor) and (same or shares) else out


def _move(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``Tensor.to``: the device may be a device, a string, a number or another tensor's."""
    own, rest = args[0], list(args[1:])
    kwargs.pop("non_blocking", None)
    to_cuda: bool | None = None
    if "device" in kwargs and kwargs["device"] is not None:
        to_cuda = _is_cuda(kwargs["device"])
        kwargs["device"] = _CPU if to_cuda else kwargs["device"]
    elif isinstance(kwargs.get("other"), torch.Tensor):
        to_cuda = is_marked(kwargs["other"])
    elif rest and isinstance(rest[0], torch.Tensor):
        to_cuda = is_marked(rest[0])
    elif rest and isinstance(rest[0], str | torch.device | int) and not isinstance(rest[0], bool):
        to_cuda = _is_cuda(rest[0])
        rest[0] = _CPU if to_cuda else rest[0]
    out = func(own, *rest, **kwargs)
    if to_cuda is None:
        return mark(out) if is_marked(own) else out
    if out is own and is_marked(own) != to_cuda:
        out = own.clone()
    return mark(out) if to_cuda else _unmark(out)


def _unmark(tensor: torch.Tensor) -> torch.Tensor:
    if is_marked(tensor):
        setattr(tensor, _MARK, False)
    return tensor


def _to_cuda(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if is_marked(args[0]) else mark(args[0].clone())


def _to_cpu(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0].clone() if is_marked(args[0]) else args[0]


def _same(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0]


def _copy_into(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return func(*args, **kwargs)  # the destination stays where it is


def _repr(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    text = func(*args, **kwargs)
    return f"{text[:-1]}, device='cuda:0')" if is_marked(args[0]) and text.endswith(")") else text


def _numpy(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if is_marked(args[0]):  # as torch says it
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
    return func(*args, **kwargs)


def _type(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``x.type()`` names the device too; ``x.type(torch.cuda.HalfTensor)`` asks for it."""
    wanted = kwargs.get("dtype", args[1] if len(args) > 1 else None)
    if wanted is None:
        text = func(*args, **kwargs)
        return text.replace("torch.", "torch.cuda.", 1) if is_marked(args[0]) else text
    name = wanted if isinstance(wanted, str) else f"{wanted.__module__}.{wanted.__name__}" if isinstance(wanted, type) else ""
    if name.startswith("torch.cuda."):
        return mark(func(args[0], name.replace("torch.cuda.", "torch.", 1)))
    out = func(*args, **kwargs)
    return mark(out) if is_marked(args[0]) and not name else out


def _get_device(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return 0 if is_marked(args[0]) else func(*args, **kwargs)


def _property(func: Any, args: tuple[Any, ...]) -> Any:
    name = getattr(func.__self__, "__name__", "")
    if name == "device":
        return _CUDA if is_marked(args[0]) else func(*args)
    if name == "is_cuda":
        return is_marked(args[0])
    if name == "is_cpu":
        return not is_marked(args[0])
    out = func(*args)
    return mark(out) if isinstance(out, torch.Tensor) and is_marked(args[0]) else out


def _assign(func: Any, args: tuple[Any, ...]) -> None:
    """``x.data = y`` (as ``Module.cuda`` does for each parameter) puts x where y is."""
    func(*args)
    if getattr(func.__self__, "__name__", "") == "data":
        setattr(args[0], _MARK, is_marked(args[1]))


_SPECIAL: dict[Any, Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]] = {}


def _special() -> dict[Any, Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]]:
    if not _SPECIAL:
        t = torch.Tensor
        _SPECIAL.update({
            t.to: _move, t.cuda: _to_cuda, t.cpu: _to_cpu, t.pin_memory: _same, t.record_stream: lambda f, a, k: None,
            t.copy_: _copy_into, t.__repr__: _repr, t.get_device: _get_device, t.numpy: _numpy, t.__array__: _numpy, t.type: _type,
        })  # fmt: skip
    return _SPECIAL


def _is_cuda(device: Any) -> bool:
    if isinstance(device, bool):
        return False
    return isinstance(device, int) or str(device).partition(":")[0] == "cuda"


def _tensors(value: Any) -> Iterable[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, str | bytes | int | float | torch.Size) or value is None:
        return
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, tuple | list) or hasattr(value, "mapping"):
        for item in value:
            yield from _tensors(item)


def _makes_tensors(func: Any) -> bool:
    return func in _torch_device._device_constructors()


# ---------------------------------------------------------------------------------------------- installing
def everywhere() -> None:
    """Enter the mode in this thread and in every thread that starts from now on; teach torch's own default-device paths."""
    CudaOnCpu().__enter__()
    plain = threading.Thread._bootstrap_inner  # type: ignore[attr-defined]

    def _bootstrap_inner(self: threading.Thread) -> None:
        with CudaOnCpu():  # a function mode holds for one thread only
            plain(self)

    threading.Thread._bootstrap_inner = _bootstrap_inner  # type: ignore[attr-defined]
    torch.set_default_device = _set_default_device
    torch.get_default_device = lambda: _CUDA if _default_cuda else _CPU
    context = _torch_device.DeviceContext
    plain_answer = context.__torch_function__

    def with_device(self: Any, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        if self.device.type != "cuda":
            return plain_answer(self, func, types, args, kwargs)
        given = dict(kwargs or {})
        if _makes_tensors(func) and given.get("device") is None:
            given["device"] = _CUDA
        return answer(func, args, given)

    context.__torch_function__ = with_device
    torch.Tensor._make_subclass = staticmethod(_marked_subclass(torch.Tensor._make_subclass))
    torch.Generator = _generator(torch.Generator)
    _mark_gradients()
    torch.load = _load(torch.load)


_plain_set_default_device = torch.set_default_device


def _set_default_device(device: Any) -> None:
    global _default_cuda
    _default_cuda = device is not None and _is_cuda(device)
    _plain_set_default_device("cpu" if _default_cuda else device)


def _generator(plain: Any) -> Any:
    class Generator(plain):  # type: ignore[misc]
        """A generator of random numbers; one for cuda lives on the CPU."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return plain.__new__(cls, _CPU if _is_cuda(device) else device)

    Generator.__name__ = Generator.__qualname__ = "Generator"
    return Generator


def _mark_gradients() -> None:
    """Autograd makes tensors that no mode sees: keep the marks of what a function saves, and mark the gradients it gets likewise."""
    from torch.autograd.function import BackwardCFunction, FunctionCtx

    plain_save, plain_apply, plain_saved = FunctionCtx.save_for_backward, BackwardCFunction.apply, BackwardCFunction.saved_tensors

    def save_for_backward(self: Any, *tensors: Any) -> None:
        self._tilelab_marks = [isinstance(t, torch.Tensor) and is_marked(t) for t in tensors]
        plain_save(self, *tensors)

    def saved_tensors(self: Any) -> tuple[Any, ...]:
        saved = plain_saved.__get__(self)
        return tuple(mark(t) if on_cuda else t for t, on_cuda in zip(saved, self._tilelab_marks, strict=True)) if saved else saved

    def apply(self: Any, *gradients: Any) -> Any:
        if any(getattr(self, "_tilelab_marks", ())):
            mark(gradients)
        with CudaOnCpu():  # a mode is off while it answers, as it does `backward()`, and this is the user's code
            return plain_apply(self, *gradients)

    FunctionCtx.save_for_backward = save_for_backward
    BackwardCFunction.saved_tensors = property(saved_tensors)
    BackwardCFunction.apply = apply


def _marked_subclass(plain: Any) -> Any:
    # How a Parameter is made; no mode sees it. torch's compiler compares these parameters with its own stand-in's.
    def _make_subclass(cls: Any, data: Any, requires_grad: bool = False, **kwargs: Any) -> Any:
        made = plain(cls, data, requires_grad, **kwargs)
        return mark(made) if is_marked(data) else made

    return _make_subclass


def _load(plain: Any) -> Any:
    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if map_location is None or (isinstance(map_location, str | torch.device) and _is_cuda(map_location)):
            cuda = map_location is not None
            out = plain(f, _CPU, *args, **kwargs)
            return mark(out) if cuda else out
        return plain(f, map_location, *args, **kwargs)

    return load


@contextmanager
def plainly() -> Any:
    """Within the block torch answers as it really is (this thread)."""
    with torch._C.DisableTorchFunction():
        yield
