"""Production operators written in TileLang: each module holds a builder, a host function with checks, and a torch reference.

Nothing is imported here: ``import tilelab.kernels`` costs nothing, and each operator's module loads TileLang when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: public name → module that holds it
_HOME = {
    "gemm": "tilelab.kernels.gemm",
    "attention": "tilelab.kernels.attention",
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


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'tilelab.kernels' has no attribute {name!r}")
