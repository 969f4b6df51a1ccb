"""The trusted side of isolation: send a submission to a confined process and make sense of what came back.

On Linux a warm fork server (:mod:`tilelab.grader.server`) forks a confined child for each submission, about 0.1 s each.
Elsewhere each submission gets a fresh process with limits on time and, where the system has them, on memory.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilelab.errors import EnvironmentLacks
from tilelab.finding import Finding
from tilelab.grader import wire
from tilelab.grader.sandbox import Limits
from tilelab.grader.submission import Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a submission gave no Program: a short ``reason``, a sentence, and what to try."""

    reason: str
    message: str
    fix: str = ""
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What came out of the confined process. Nothing in it is trusted: Programs are still bytes.

    Attributes:
        programs: For each size asked for, the serialised Program, or the finding with which it was refused.
        failure: Why there are no programs.
        guards: What confined the process.
        output: What it printed (the beginning).
    """

    programs: tuple[bytes | Finding, ...] = ()
    failure: Failure | None = None
    guards: tuple[str, ...] = ()
    output: str = ""


def capture_isolated(
    submission: Submission, entry: str, sizes: Sequence[Mapping[str, int]], limits: Limits | None = None, *, layout: bool = False
) -> Captured:
    """Run a submission in a confined process and return its Programs, one for each of ``sizes``, as bytes.

    ``layout``: the entry is a function that returns a layout, which comes as a Program that holds nothing else.
    """
    limits = limits or Limits()
    request = {
        "job": "submission",
        "units": [asdict(u) for u in submission.units],
        "entry": entry,
        "sizes": [dict(s) for s in sizes],
        "layout": layout,
        "limits": asdict(limits),
        "readable": readable_folders(),
    }
    answer, data = fork_server().ask(request) if can_fork() else _fresh_process(request, limits)
    return understand(answer, data, len(sizes), limits)


def can_fork() -> bool:
    """Say whether this system has the fork server (class grading is for Linux)."""
    return sys.platform == "linux"


def readable_folders() -> list[str]:
    """Folders a submission may read: Python, its packages and the system's libraries. No solution is in any of them."""
    package = Path(__file__).resolve().parents[1]
    python = {sys.prefix, sys.base_prefix, sys.exec_prefix, *sysconfig.get_paths().values()}
    path = {p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p and not _is_checkout(Path(p))}
    # This package goes in, not the folder that holds it: that may be a checkout, with the solutions beside it.
    return sorted(python | path | set(_SYSTEM) | {str(package)})


_SYSTEM = ("/usr", "/lib", "/lib64", "/bin", "/etc", "/proc", "/dev/null", "/dev/urandom", "/sys/devices/system/cpu")


def _is_checkout(folder: Path) -> bool:
    return (folder / "puzzles").is_dir() and (folder / "tilelab").is_dir()


# -------------------------------------------------------------------------------------------- understanding
def understand(answer: Mapping[str, Any], data: bytes, wanted: int, limits: Limits) -> Captured:
    """Turn the raw result of a confined process into a :class:`Captured`; every way to fail has its own reason."""
    output = answer.get("output", "")
    try:
        frames = wire.parse(data)
        garbled = ""
    except wire.Garbled as e:
        frames, garbled = [], str(e)
    guards: tuple[str, ...] = ()
    if frames and frames[0][0] == wire.GUARDS:
        guards = tuple(json.loads(frames.pop(0)[1]))

    def failed(reason: str, message: str, fix: str = "", **kw: Any) -> Captured:
        return Captured(failure=Failure(reason=reason, message=message, fix=fix, **kw), guards=guards, output=output)

    cut, status = answer.get("cut", ""), int(answer.get("status", 0))
    if cut == "time" or status in (-signal.SIGXCPU, -getattr(signal, "SIGVTALRM", 0)):
        seconds = limits.wall_seconds if cut == "time" else limits.cpu_seconds
        return failed("time", f"it did not finish within {seconds} s", "look for an endless loop or a sleep outside the kernel")
    if cut == "result":
        return failed(
            "result", f"its Programs are larger than {limits.result_bytes >> 20} MiB", "unroll less in Python; loop with T.serial"
        )
    if cut == "output" or answer.get("printed_bytes", 0) > limits.output_bytes:
        return failed(
            "output", f"it printed more than {limits.output_bytes >> 10} KiB", "leave out the prints; a grade is never read from them"
        )
    if status == -signal.SIGXFSZ:
        return failed("file", f"it wrote a file larger than {limits.file_bytes >> 20} MiB", "a kernel needs no files")
    errors = [json.loads(body) for tag, body in frames if tag == wire.ERROR] if not garbled else []
    if garbled or not _well_formed(frames, wanted, bool(errors)):
        if status < 0 and not garbled and not frames:
            return failed("crash", f"it crashed ({signal.Signals(-status).name})", "run it by itself to see where")
        if status >= 0 and not garbled and not any(tag == wire.END for tag, _ in frames):
            return failed(
                "exit", f"it ended its own process (exit code {status}) before its kernel was captured", "leave out os._exit() and exit()"
            )
        if status < 0 and not garbled:
            return failed(
                "crash", f"it crashed ({signal.Signals(-status).name}) while its kernel was captured", "run it by itself to see where"
            )
        return failed(
            "channel",
            "it wrote to the channel on which only the grader's own capture writes",
            "a submission is a kernel; leave file descriptors alone",
        )
    if errors:
        told = errors[0]
        return failed(
            str(told["reason"]), str(told["message"]), str(told.get("fix", "")), line=_number(told.get("line")), file=told.get("file")
        )
    programs = tuple(body if tag == wire.PROGRAM else finding_of(json.loads(body)) for tag, body in frames[:-1])
    return Captured(programs=programs, guards=guards, output=output)


def _well_formed(frames: list[tuple[bytes, bytes]], wanted: int, error: bool) -> bool:
    tags = [t for t, _ in frames]
    if error:
        return tags.count(wire.ERROR) == 1 and tags[-1] == wire.ERROR
    return len(tags) == wanted + 1 and tags[-1] == wire.END and all(t in (wire.PROGRAM, wire.REFUSED) for t in tags[:-1])


def finding_of(data: Mapping[str, Any]) -> Finding:
    """Rebuild a Finding from its JSON."""

    def triple(v: Any) -> tuple[int, int, int] | None:
        return (int(v[0]), int(v[1]), int(v[2])) if v else None

    return Finding(
        code=str(data["code"]),
        severity=data["severity"],
        message=str(data["message"]),
        fix=str(data["fix"]),
        file=data["file"],
        line=_number(data["line"]),
        block=triple(data["block"]),
        thread=triple(data["thread"]),
        indices=dict(data["indices"]),
        evidence=dict(data["evidence"]),
    )


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None


# ----------------------------------------------------------------------------------------------- strategies
class ForkServer:
    """The client of one warm fork server; started when first asked, restarted when it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    @property
    def running(self) -> bool:
        """Whether the server process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the server process in the background, if none runs; a first answer then comes sooner."""
        if self.running:
            return
        environment = {**os.environ, "PYTHONPATH": _python_path()}
        command = [sys.executable, "-P", "-m", "tilelab.grader.server"]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the server)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, env=environment, start_new_session=True, bufsize=0
        )
        self._ready = False

    def ask(self, request: dict[str, Any], blobs: tuple[bytes, ...] = ()) -> tuple[dict[str, Any], bytes]:
        """Send one request and wait for its answer.

        Raises:
            EnvironmentLacks: The server cannot start; the last line it said is in the message.
        """
        with self._lock:
            self.start()
            process = self._process
            assert process is not None
            assert process.stdin is not None
            if not self._ready:
                if self._read(5, 120) != b"ready":
                    raise EnvironmentLacks(f"the grader's fork server did not start: {self._last_words()}", fix="run `tilelab doctor`")
                self._ready = True
            try:
                wire.send(process.stdin.write, request, blobs)
                process.stdin.flush()
                answer = wire.receive(lambda n: self._read(n, request["limits"]["wall_seconds"] + 30))
            except (BrokenPipeError, TimeoutError):
                answer = None
            if answer is None:
                self.stop()
                return {"status": -signal.SIGKILL, "cut": ""}, b""
            message, (data,) = answer
            return message, data

    def stop(self) -> None:
        """End the server."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe:
                    pipe.close()
            self._process = None

    def _read(self, n: int, seconds: float) -> bytes:
        assert self._process is not None
        assert self._process.stdout is not None
        fd, parts, deadline = self._process.stdout.fileno(), bytearray(), time.monotonic() + seconds
        while len(parts) < n:
            if not select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise TimeoutError
            data = os.read(fd, n - len(parts))
            if not data:
                break
            parts += data
        return bytes(parts)

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"


_server: ForkServer | None = None


def fork_server() -> ForkServer:
    """Return this process's fork server, started at most once."""
    global _server
    if _server is None:
        _server = ForkServer()
        atexit.register(_server.stop)
    return _server


def _fresh_process(request: dict[str, Any], limits: Limits) -> tuple[dict[str, Any], bytes]:
    """Isolation where there is no fork server: a new interpreter for each submission."""
    with tempfile.TemporaryDirectory(prefix="tilelab-") as folder:
        path = Path(folder) / "result"
        path.touch()
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tilelab.grader.worker", str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": _python_path()},
        )
        try:
            output, _ = process.communicate(json.dumps(request).encode(), timeout=limits.wall_seconds + 20)
            cut = ""
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
            cut = "time"
        answer = {
            "cut": cut,
            "status": process.returncode if not cut else -9,
            "printed_bytes": len(output),
            "output": output[: limits.output_bytes].decode("utf-8", "replace"),
        }
        return answer, path.read_bytes()


def _python_path() -> str:
    """The path on which a helper process finds this very package."""
    home = str(Path(__file__).resolve().parents[2])
    rest = os.environ.get("PYTHONPATH", "")
    return f"{home}{os.pathsep}{rest}" if rest else home
