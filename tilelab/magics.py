"""``%load_ext tilelab``: with no GPU, kernels of this notebook run in the simulator; with one, cells show what kernels print on it."""

from __future__ import annotations

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """Called by IPython; does nothing to torch or TileLang where a CUDA device is present."""
    import torch

    if torch.cuda.is_available():
        from tilelab.runtime.device_prints import watch_cells

        watch_cells(shell)
        return
    from tilelab.runtime.hook import install

    install(checks=False)


def unload_ipython_extension(shell: Any) -> None:
    """Called by IPython; the hook stays until the kernel restarts."""
    print("TileLab's simulator stays in place until this kernel restarts")
