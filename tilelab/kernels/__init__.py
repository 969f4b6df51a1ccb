"""Production operators written in TileLang: each module holds a builder, a host function with checks, and a torch reference.

Nothing is imported here: ``import tilelab.kernels`` costs nothing, and each operator's module loads TileLang when it is first used. An
operator that has its module's name is the module, called as the function: ``kernels.gemm(a, b)``, ``kernels.gemm.reference(a, b)``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

#: public name → module that holds it
_HOME = {
    "gemm": "tilelab.kernels.gemm",
    "attention": "tilelab.kernels.attention",
    "attention_backward": "tilelab.kernels.attention_backward",
    "decode": "tilelab.kernels.decode",
    "flash_attention": "tilelab.kernels.attention_backward",
    "sparse_mla": "tilelab.kernels.sparse_mla",
    "sparse_mla_backward": "tilelab.kernels.sparse_mla",
    "fp8_gemm": "tilelab.kernels.fp8_gemm",
    "gemv": "tilelab.kernels.gemv",
    "grouped_gemm": "tilelab.kernels.grouped_gemm",
    "indexer": "tilelab.kernels.indexer",
    "mla_decode": "tilelab.kernels.mla",
    "sparse_gemm": "tilelab.kernels.sparse_gemm",
    "stream_k_gemm": "tilelab.kernels.stream_k",
    "topk": "tilelab.kernels.topk",
    "w4a16_gemm": "tilelab.kernels.w4a16",
}
__all__ = sorted(_HOME)


class _Operator(ModuleType):
    """A module that is called as its function of the same name."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return vars(self)[self.__name__.rpartition(".")[2]](*args, **options)


class _Package(ModuleType):
    """Makes operators of the modules that Python's import binds here, whichever import comes first."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _HOME.get(name) == value.__name__:
            value.__class__ = _Operator
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name in _HOME:
        module = import_module(_HOME[name])
        return module if module.__name__ == f"{__name__}.{name}" else getattr(module, name)
    raise AttributeError(f"module 'tilelab.kernels' has no attribute {name!r}")
