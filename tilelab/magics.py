"""``%load_ext tilelab``: on a machine with no GPU, kernels of this notebook run in the simulator."""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """Called by IPython; does nothing to torch or TileLang where a CUDA device is present."""
    import torch

    if torch.cuda.is_available():
        return
    from tilelab.runtime.hook import install

    install(checks=False)


def unload_ipython_extension(shell: Any) -> None:
    """Called by IPython; the hook stays until the kernel restarts."""
    print("TileLab's simulator stays in place until this kernel restarts")
