"""The fork server: a warm process that has TileLang imported and forks one confined child for each submission.

It runs no submission's code itself. It reads requests on stdin and answers on the descriptor that was its stdout.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

from tilelab.grader import wire
from tilelab.grader.sandbox import Limits, confine


@dataclass(slots=True, kw_only=True)
class _Child:
    pid: int
    result: int  # pipe of frames
    output: int  # pipe of what it prints


def main() -> int:
    """Serve until stdin ends."""
    requests, answers = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2, 1)  # nothing that a library prints may mix with the answers
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a notebook is meant for the kernel
    from tilelab.grader import worker

    worker.warm()
    _write_all(answers, b"ready")
    while (message := wire.receive(lambda n: _read_exactly(requests, n))) is not None:
        request, blobs = message
        answer, data = _serve(request, blobs, keep=(requests, answers))
        wire.send(lambda b: _write_all(answers, b), answer, (data,))
    return 0


def _serve(request: dict[str, Any], blobs: tuple[bytes, ...], keep: tuple[int, ...]) -> tuple[dict[str, Any], bytes]:
    limits = Limits(**request["limits"])
    folder = tempfile.mkdtemp(prefix="tilelab-")
    try:
        return _watch(_fork(request, blobs, limits, folder, keep), limits)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fork(request: dict[str, Any], blobs: tuple[bytes, ...], limits: Limits, folder: str, close: tuple[int, ...]) -> _Child:
    result_r, result_w = os.pipe()
    output_r, output_w = os.pipe()
    pid = os.fork()
    if pid:
        os.close(result_w)
        os.close(output_w)
        return _Child(pid=pid, result=result_r, output=output_r)
    code = 1
    try:
        os.setsid()
        for fd in (*close, result_r, output_r):
            os.close(fd)
        os.dup2(output_w, 1)
        os.dup2(output_w, 2)
        os.close(output_w)
        os.chdir(folder)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for fatal in (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL):
            signal.signal(fatal, signal.SIG_DFL)  # libraries print slow backtraces; a crash may just be one
        _JOBS[request["job"]](request, blobs, limits, folder, result_w)
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)  # no atexit handler, no destructor: nothing of the server's may run twice


def _submission(request: dict[str, Any], blobs: tuple[bytes, ...], limits: Limits, folder: str, out: int) -> None:
    from tilelab.grader import worker

    os.environ.clear()
    os.environ.update(HOME=folder, TMPDIR=folder, PATH="/usr/bin:/bin", LANG="C.UTF-8")
    held = confine(limits, writable=folder, readable=request["readable"])
    _write_all(out, wire.frame(wire.GUARDS, list(held)))
    worker.capture_submission(request, lambda b: _write_all(out, b))


def _lower(request: dict[str, Any], blobs: tuple[bytes, ...], limits: Limits, folder: str, out: int) -> None:
    """Lower a verified Program: no code of the learner's runs here, but TVM may crash on it."""
    from tilelab.grader.lowering import facts, owner

    element = request.get("element")
    answer = owner(blobs[0], request["target"], element) if element else facts(blobs[0], request["target"])
    _write_all(out, wire.frame(wire.FACTS, answer))
    _write_all(out, wire.frame(wire.END))


_JOBS = {"submission": _submission, "lower": _lower}


def _watch(child: _Child, limits: Limits) -> tuple[dict[str, Any], bytes]:
    """Collect what the child writes until it ends, its time is over or it writes too much."""
    deadline = time.monotonic() + limits.wall_seconds
    result, output, printed, cut = bytearray(), bytearray(), 0, ""
    open_fds = {child.result, child.output}
    while open_fds and not cut:
        left = deadline - time.monotonic()
        ready = select.select(list(open_fds), [], [], max(0.0, left))[0]
        if not ready:
            cut = "time"
        for fd in ready:
            data = os.read(fd, 1 << 16)
            if not data:
                open_fds.discard(fd)
            elif fd == child.result:
                result += data
                cut = cut or ("result" if len(result) > limits.result_bytes else "")
            else:
                printed += len(data)
                output += data[: limits.output_bytes - len(output)]
                cut = cut or ("output" if printed > 64 * limits.output_bytes else "")
    if cut:
        _kill(child.pid)
    status, usage = _wait(child.pid, deadline)
    _kill(child.pid)  # whatever it may have left behind in its session
    for fd in (child.result, child.output):
        os.close(fd)
    answer = {
        "cut": cut,
        "status": os.waitstatus_to_exitcode(status),
        "printed_bytes": printed,
        "output": bytes(output).decode("utf-8", "replace"),
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
    }
    return answer, bytes(result)


def _wait(pid: int, deadline: float) -> tuple[int, Any]:
    """Wait for the child, which may have closed its pipes without ending."""
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return status, usage
        if time.monotonic() > deadline:
            _kill(pid)
            _, status, usage = os.wait4(pid, 0)
            return status, usage
        time.sleep(0.002)


def _kill(pid: int) -> None:
    """Kill the child's whole session (it leads one of its own)."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _read_exactly(fd: int, n: int) -> bytes:
    parts = []
    while n and (part := os.read(fd, min(n, 1 << 20))):
        parts.append(part)
        n -= len(part)
    return b"".join(parts)


if __name__ == "__main__":
    sys.exit(main())
