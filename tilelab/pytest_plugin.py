"""``pytest -p tilelab.pytest_plugin --tilelab-sim``: a test suite that wants a GPU, run in the simulator."""

from __future__ import annotations

from typing import Any


def pytest_addoption(parser: Any) -> None:
    """Add ``--tilelab-sim`` and ``--tilelab-target``."""
    group = parser.getgroup("tilelab", "run TileLang kernels in TileLab's simulator")
    group.addoption("--tilelab-sim", action="store_true", help="cuda tensors live on the CPU, TileLang kernels are simulated")
    group.addoption("--tilelab-target", default="sm_90", metavar="T", help="the GPU that the tests are told of. Default: sm_90")


def pytest_configure(config: Any) -> None:
    """Install the hook before any test module is imported."""
    if not config.getoption("--tilelab-sim"):
        return
    import pytest

    from tilelab.errors import TileLabError
    from tilelab.runtime.hook import install, satisfy_test_markers

    try:
        settings = install(target=config.getoption("--tilelab-target"), show_prints=True, lower=True)
    except TileLabError as error:
        raise pytest.UsageError(str(error)) from None
    satisfy_test_markers()
    config.addinivalue_line("markers", "cuda: needs CUDA (the simulator answers)")
    config._tilelab = settings


def pytest_report_header(config: Any) -> str | None:
    """Say in the header which GPU is simulated."""
    settings = getattr(config, "_tilelab", None)
    return f"tilelab: kernels run in the simulator, as {settings.target}" if settings else None
