"""A Jupyter server with nothing of TileLab but the configuration that the wheel installs."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "let-me-in"
# Five seconds less: jsonschema would compile a grammar that nothing here needs.
START = "import sys; sys.modules['rfc3987_syntax'] = None; from jupyter_server.serverapp import main; main()"


@dataclass
class Server:
    url: str
    root: Path

    def ask(self, path: str, body: object = None, *, token: str | None = TOKEN) -> tuple[int, dict]:
        """Return the status and the JSON of an answer; a body makes it a POST."""
        request = urllib.request.Request(f"{self.url}{path}", None if body is None else json.dumps(body).encode())
        if token:
            request.add_header("Authorization", f"token {token}")
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            return error.code, json.loads(text) if text.startswith("{") else {}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    root = tmp_path_factory.mktemp("served")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    env = {k: v for k, v in os.environ.items() if k != "TILELAB_HOME"}
    env |= {
        "PYTHONPATH": str(ROOT),
        "JUPYTER_CONFIG_PATH": str(ROOT / "jupyter-config"),
        "JUPYTER_CONFIG_DIR": str(root / ".config"),
        "JUPYTER_NO_CONFIG": "",
    }
    options = [
        "--allow-root",
        "--no-browser",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.root_dir={root}",
    ]
    process = subprocess.Popen(
        [sys.executable, "-c", START, *options], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    made = Server(f"http://127.0.0.1:{port}/", root)
    try:
        for _ in range(300):
            if process.poll() is not None:
                pytest.fail(f"the server ended:\n{process.stdout.read()}")
            try:
                if made.ask("api")[0] == 200:
                    break
            except OSError:
                time.sleep(0.1)
        yield made
    finally:
        process.terminate()
        process.wait(10)
