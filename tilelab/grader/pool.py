"""Many submissions: in this process, in a pool on this machine, or on a Dask cluster. One bad submission never stops the rest."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tilelab.errors import EnvironmentLacks, InputError, TileLabError
from tilelab.grader.grading import failed, grade
from tilelab.grader.isolate import Failure
from tilelab.grader.report import Report
from tilelab.grader.spec import Spec

#: Below this, starting a pool costs more than it saves.
_WORTH_A_POOL = 8


def grade_many(
    spec: Spec,
    paths: Sequence[Path],
    *,
    device: str = "sim",
    seed: int | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
) -> Iterator[Report]:
    """Yield a report for each submission, in order.

    Raises:
        EnvironmentLacks: ``scheduler`` is given and Dask is not installed.
        InputError: The scheduler cannot be reached.
    """
    if scheduler:
        yield from _on_cluster(spec, paths, device, seed, scheduler)
        return
    workers = min(workers or os.cpu_count() or 1, len(paths))
    if device != "sim" or workers < 2 or len(paths) < _WORTH_A_POOL:
        for path in paths:
            yield grade_one(spec, path, device, seed)
        return
    yield from _in_pool(spec, paths, device, seed, workers)


def grade_one(spec: Spec, path: Path, device: str, seed: int | None) -> Report:
    """Grade one submission of a class: what is wrong with it, or with grading it, becomes its report."""
    try:
        return grade(spec, path, device=device, seed=seed)
    except EnvironmentLacks:
        raise  # that concerns all of them
    except TileLabError as e:
        return failed(spec, str(path), Failure(reason="file", message=e.message, fix=e.fix), seed=seed)
    except Exception as e:
        reason = Failure(
            reason="grader", message=f"the grader itself failed: {type(e).__name__}: {e}", fix="tell the teacher; it is not the kernel"
        )
        return failed(spec, str(path), reason, seed=seed)


def _in_pool(spec: Spec, paths: Sequence[Path], device: str, seed: int | None, workers: int) -> Iterator[Report]:
    """Processes that each have a fork server of their own; when one dies, what was lost is graded again, one by one."""
    with _pool(workers) as pool:
        futures = [pool.submit(grade_one, spec, p, device, seed) for p in paths]
        for path, future in zip(paths, futures, strict=True):
            yield _result(future) or _alone(spec, path, device, seed)


def _alone(spec: Spec, path: Path, device: str, seed: int | None) -> Report:
    with _pool(1) as pool:
        report = _result(pool.submit(grade_one, spec, path, device, seed))
    lost = Failure(reason="grader", message="the process that graded it died", fix="grade it again by itself")
    return report or failed(spec, str(path), lost, seed=seed)


def _result(future: Future[Report]) -> Report | None:
    try:
        return future.result()
    except BrokenExecutor:
        return None


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def _on_cluster(spec: Spec, paths: Sequence[Path], device: str, seed: int | None, scheduler: str) -> Iterator[Report]:
    try:
        from distributed import Client
    except ImportError:
        raise EnvironmentLacks("--scheduler needs Dask, which is not installed", fix="pip install 'tilelab[grade]'") from None
    try:
        client: Any = Client(scheduler, timeout=10)
    except (OSError, TimeoutError, ValueError) as e:
        raise InputError(
            f"no Dask scheduler answers at {scheduler}: {e}", fix="start one with `dask scheduler`, and give its tcp:// address"
        ) from None
    try:
        futures = [client.submit(grade_one, spec, p.resolve(), device, seed, pure=False, retries=2) for p in paths]
        for path, future in zip(paths, futures, strict=True):
            try:
                yield future.result()
            except EnvironmentLacks:
                raise
            except Exception as e:
                lost = Failure(
                    reason="grader", message=f"the worker that graded it failed: {type(e).__name__}: {e}", fix="grade it again by itself"
                )
                yield failed(spec, str(path), lost, seed=seed)
    finally:
        client.close()
