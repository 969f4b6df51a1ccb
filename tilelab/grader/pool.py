"""Many submissions: in this process, in a pool on this machine, or on a Dask cluster. One bad submission never stops the rest."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import queue
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, TypeAlias

from tilelab.errors import EnvironmentLacks, InputError, TileLabError
from tilelab.grader.grading import failed, grade
from tilelab.grader.isolate import Failure
from tilelab.grader.report import Report
from tilelab.grader.spec import Spec
from tilelab.grader.submission import Submission, read_submission

#: Below this, starting a pool costs more than it saves.
_WORTH_A_POOL = 8
#: Seconds without a result after which the cluster is asked whether it has workers at all.
_PATIENCE = 20.0
#: A submission as it was read (or why it could not be), and its seed.
Work: TypeAlias = "tuple[Submission | Failure, str, int | None]"


def grade_many(
    spec: Spec,
    paths: Sequence[Path],
    *,
    device: str = "sim",
    seeds: Sequence[int | None] | None = None,
    scheduler: str | None = None,
    workers: int | None = None,
) -> Iterator[tuple[int, Report]]:
    """Yield the position and the report of each submission, as they are done.

    Args:
        spec: The puzzle.
        paths: The submissions.
        device: ``"sim"`` or ``"cuda"``.
        seeds: One for each; None for a fresh one. Default: fresh ones.
        scheduler: Address of a Dask scheduler. Default: a pool of processes on this machine.
        workers: Processes of the pool. Default: one for each core.

    Raises:
        EnvironmentLacks: ``scheduler`` is given and Dask is not installed; or what all submissions need is not there.
        InputError: The scheduler cannot be reached, or its last worker has gone.
    """
    work = [read(spec, path, seed) for path, seed in zip(paths, seeds or [None] * len(paths), strict=True)]
    if scheduler:
        yield from _on_cluster(spec, work, device, scheduler)
        return
    workers = min(workers or os.cpu_count() or 1, len(work))
    if device != "sim" or workers < 2 or len(work) < _WORTH_A_POOL:
        yield from ((i, grade_one(spec, w, device)) for i, w in enumerate(work))
        return
    yield from _in_pool(spec, work, device, workers)


def read(spec: Spec, path: Path, seed: int | None) -> Work:
    """Read a submission here, so that whoever grades it needs no file of ours; what cannot be read becomes its report."""
    try:
        return read_submission(path, spec.entry), str(path), seed
    except TileLabError as e:
        return Failure(reason="file", message=e.message, fix=e.fix), str(path), seed


def grade_one(spec: Spec, work: Work, device: str) -> Report:
    """Grade one submission of a class: what is wrong with it, or with grading it, becomes its report."""
    submission, name, seed = work
    if isinstance(submission, Failure):
        return failed(spec, name, submission, seed=seed)
    try:
        return grade(_here(spec), submission, device=device, seed=seed)
    except EnvironmentLacks:
        raise  # that concerns all of them
    except TileLabError as e:
        return failed(spec, name, Failure(reason="file", message=e.message, fix=e.fix), seed=seed)
    except Exception as e:
        return _lost(spec, work, f"the grader itself failed: {type(e).__name__}: {e}")


def _here(spec: Spec) -> Spec:
    """The puzzle as this machine has it: a worker elsewhere has its own copy of the course."""
    if (spec.folder / "oracle.py").is_file():
        return spec
    from tilelab.course.catalog import puzzle

    return dataclasses.replace(spec, folder=puzzle(spec.id).folder)


def _lost(spec: Spec, work: Work, message: str) -> Report:
    return failed(spec, work[1], Failure(reason="grader", message=message, fix="grade it again; it is not the kernel"), seed=work[2])


# ------------------------------------------------------------------------------------------------ on this machine
def _in_pool(spec: Spec, work: Sequence[Work], device: str, workers: int) -> Iterator[tuple[int, Report]]:
    """Processes that each have a fork server of their own. When one dies the pool is made anew, and who was lost twice goes alone."""
    left = list(range(len(work)))
    for _ in range(2):
        lost: list[int] = []
        with _pool(min(workers, len(left))) as pool:
            futures = {}
            for i in left:
                try:
                    futures[pool.submit(grade_one, spec, work[i], device)] = i
                except BrokenExecutor:
                    lost.append(i)
            for future in as_completed(futures):
                try:
                    yield futures[future], future.result()
                except BrokenExecutor:
                    lost.append(futures[future])
        left = sorted(lost)
        if not left:
            return
    for i in left:
        yield i, _alone(spec, work[i], device)


def _alone(spec: Spec, work: Work, device: str) -> Report:
    try:
        with _pool(1) as pool:
            return pool.submit(grade_one, spec, work, device).result()
    except BrokenExecutor:
        return _lost(spec, work, "the process that graded it died")


def _pool(workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


# -------------------------------------------------------------------------------------------------- on a cluster
def _on_cluster(spec: Spec, work: Sequence[Work], device: str, scheduler: str) -> Iterator[tuple[int, Report]]:
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
    done: queue.Queue[Any] = queue.Queue()
    try:
        if not client.scheduler_info()["workers"]:
            raise InputError(f"the Dask cluster at {scheduler} has no workers", fix="start some with `dask worker ADDRESS`")
        futures = {client.submit(grade_one, spec, w, device, pure=False, retries=3): i for i, w in enumerate(work)}
        for future in futures:
            future.add_done_callback(done.put)
        left = len(work)
        while left:
            try:
                future = done.get(timeout=_PATIENCE)
            except queue.Empty:
                if not client.scheduler_info()["workers"]:
                    raise InputError(
                        f"the Dask cluster at {scheduler} has no workers any more; {left} submissions are not graded",
                        fix="start some; what is graded is kept when --out names a folder",
                    ) from None
                continue
            left -= 1
            i = futures.pop(future)
            try:
                yield i, future.result()
            except EnvironmentLacks:
                raise
            except Exception:  # the worker died with it each time: it may have been this submission
                yield i, _alone(spec, work[i], device)
    finally:
        client.close()
