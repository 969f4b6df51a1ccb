"""Run every notebook of the course through nbval, each solved one once, in kernels forked from a warm process.

    python tests/puzzles/notebooks.py [PUZZLE…] [--jobs N]

A kernel that starts cold imports TileLang for seconds; here one process has imported it and forks for each notebook. Jupyter
starts this very file as its kernel, which asks that process for a fork and waits for its end. Notebooks whose code is the same
in both languages run in one of them.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KERNEL = "tilelab-warm"


def main() -> int:
    """Make the notebooks, start the warm process and run nbval; the exit status is pytest's."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("puzzles", nargs="*", help="which. Default: all")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 4))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        books = made(args.puzzles, place / "books")
        spec = place / "jupyter" / "kernels" / KERNEL
        spec.mkdir(parents=True)
        address = str(place / "socket")
        argv = [sys.executable, __file__, "--kernel", address, "{connection_file}"]
        (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": KERNEL, "language": "python"}))
        environment = {**os.environ, "JUPYTER_PATH": str(place / "jupyter"), "PYTHONPATH": str(ROOT), "TILELAB_HOME": str(place)}
        server = subprocess.Popen([sys.executable, __file__, "--serve", address], env=environment, stdout=subprocess.PIPE)
        try:
            assert server.stdout is not None
            if server.stdout.readline() != b"ready\n":
                return 3
            command = [sys.executable, "-m", "pytest", "-q", "--nbval-lax", "--nbval-kernel-name", KERNEL, "-p", "no:cacheprovider",
                       "--rootdir", str(place), "-c", os.devnull, "--durations=12"]  # fmt: skip
            if args.jobs > 1 and len(books) > 1:
                command += ["-n", str(args.jobs), "--dist", "loadfile"]
            return subprocess.run([*command, *map(str, books)], cwd=place, env=environment, check=False).returncode
        finally:
            server.kill()
            server.wait()


def made(names: list[str], folder: Path) -> list[Path]:
    """Write the solved notebooks and the starters of the puzzles; those of the second language where their code differs."""
    from tilelab.course import percent, puzzle, puzzles
    from tilelab.course.generate import solved

    folder.mkdir()
    out: list[Path] = []
    for p in [puzzle(n) for n in names] or puzzles():
        seen: list[list[str]] = []
        starters = {folder / f"{p.id}.{lang}.starter.ipynb": percent.dump(p.notebook(lang)) for lang in ("en", "zh")}
        for path, text in {**solved(p, folder), **starters}.items():
            code = ["".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
            bare = ["\n".join(line.split("#")[0].rstrip() for line in c.replace(', lang="zh"', "").split("\n")) for c in code]
            if bare not in seen:
                seen.append(bare)
                path.write_text(text, "utf-8")
                out.append(path)
    return out


# ------------------------------------------------------------------------------------------- the warm process
def serve(address: str) -> None:
    """Import what notebooks need, then fork a kernel for each connection that names a connection file."""
    import ipykernel.kernelapp  # noqa: F401
    import numpy as np  # noqa: F401
    import tilelang.language  # noqa: F401
    import torch  # noqa: F401

    import tilelab.compiler
    import tilelab.course.card
    import tilelab.grader.grading
    import tilelab.sim  # noqa: F401

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        if os.fork():
            connection.close()
            continue
        listener.close()
        _kernel(connection)
        os._exit(0)


def _kernel(connection: socket.socket) -> None:
    """Become the kernel that the connection asks for; it ends when the other side does."""
    request = json.loads(connection.makefile("r").readline())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update({k: v for k, v in request["environment"].items() if k != "JPY_PARENT_PID"})
    connection.sendall(f"{os.getpid()}\n".encode())
    threading.Thread(target=lambda: (connection.recv(1), os._exit(0)), daemon=True).start()
    from ipykernel.kernelapp import IPKernelApp

    IPKernelApp.launch_instance(["-f", request["file"], "--log-level=ERROR"])


def stand_in(address: str, file: str) -> int:
    """Be the process that Jupyter started: ask for a fork, pass interrupts on to it, and end with it."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    connection.sendall((json.dumps({"file": file, "cwd": os.getcwd(), "environment": dict(os.environ)}) + "\n").encode())
    pid = int(connection.makefile("r").readline())
    signal.signal(signal.SIGINT, lambda *_: os.kill(pid, signal.SIGINT))
    while connection.recv(1):
        pass
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    elif sys.argv[1:2] == ["--kernel"]:
        sys.exit(stand_in(sys.argv[2], sys.argv[3]))
    else:
        sys.exit(main())
