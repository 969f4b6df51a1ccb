"""``tilelab lab``: JupyterLab in the learner's folder, open on a puzzle, asking nothing of the network."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tilelab.errors import EnvironmentLacks, InputError

HELP = "Open JupyterLab on the puzzles, in your own folder: ./tilelab-puzzles, or what TILELAB_HOME or --folder names."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``tilelab lab``."""
    parser.add_argument("--puzzle", metavar="N", default="1", help="the puzzle to open: its number or its name (default: 1)")
    parser.add_argument("--folder", metavar="DIR", help="the folder that keeps your work (default: TILELAB_HOME, or ./tilelab-puzzles)")
    parser.add_argument("--lang", choices=["en", "zh"], help="the language of the puzzles (default: that of LANG)")
    parser.add_argument("--port", type=int, help="the port to listen at (default: 8888, or the next free one)")
    parser.add_argument("--no-browser", action="store_true", help="print the address and open no browser")
    parser.add_argument("jupyter", nargs="*", metavar="-- OPTION", help="options for JupyterLab itself, after --")


def run(args: argparse.Namespace) -> int:
    """Serve until interrupted."""
    if find_spec("jupyterlab") is None:
        raise EnvironmentLacks("JupyterLab is not installed", fix="Get it with: pip install 'tilelab[lab]'")
    if args.port is not None and not 0 < args.port < 65536:
        raise InputError(f"--port {args.port} is no port", fix="Give a number from 1 to 65535")
    if args.jupyter and not args.jupyter[0].startswith("-"):
        raise InputError(f"{args.jupyter[0]!r} is no option of JupyterLab", fix=f"to open a puzzle: tilelab lab --puzzle {args.jupyter[0]}")
    from tilelab.course.catalog import puzzle

    puzzle(args.puzzle)  # before anything is made
    lang = args.lang or _locale_language()
    home = Path(args.folder or os.environ.get("TILELAB_HOME") or "tilelab-puzzles").expanduser().resolve()
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {home}: {error.strerror or error}", fix="Name another with --folder") from None
    os.environ["TILELAB_HOME"] = str(home)

    from tilelab.lab.shelf import Shelf

    opened = Shelf(root=home).open(args.puzzle, lang)
    with _configured(lang):
        return _serve(home, opened["path"], args)


def _serve(home: Path, notebook: str, args: argparse.Namespace) -> int:
    # jsonschema would compile a grammar of web addresses, for five seconds, and use it for nothing here.
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    from jupyterlab.labapp import LabApp

    options = [
        f"--ServerApp.root_dir={home}",
        f"--LabApp.default_url=/lab/tree/{quote(notebook)}",
        # Tabs of another folder do not belong here, so this folder remembers its own.
        f"--LabApp.workspaces_dir={home / '.tilelab' / 'workspaces'}",
        "--Application.log_level=WARN",
    ]
    if args.port is not None:
        options.append(f"--ServerApp.port={args.port}")
    if args.no_browser:
        options.append("--no-browser")
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # a container: Jupyter asks for this consent
        options.append("--allow-root")
    server = LabApp.initialize_server(argv=[*options, *args.jupyter])
    # Jupyter tells its address in the log, among much else, and says it again as a critical message; once is enough.
    server.show_banner = False
    server.log.addFilter(lambda record: "To access the server" not in record.getMessage())
    url = _url(server, notebook)
    print(f"TileLab is open at {url}\nYour work is kept in {home}\nCtrl-C stops it.", flush=True)
    server.start()
    return 0


def _url(server: Any, notebook: str) -> str:
    """Return the address of the notebook, with the token that opens it."""
    host = "localhost" if server.ip in ("", "0.0.0.0", "::", "127.0.0.1") else server.ip
    token = server.identity_provider.token
    scheme = "https" if server.certfile else "http"
    address = f"{scheme}://{host}:{server.port}{server.base_url}lab/tree/{quote(notebook)}"
    return f"{address}?token={token}" if token else address


@contextmanager
def _configured(lang: str) -> Iterator[None]:
    """Point Jupyter at our configuration, for this process alone: no news, no list of extensions, our extension enabled."""
    import tilelab

    package = Path(tilelab.__file__).parent
    with tempfile.TemporaryDirectory(prefix="tilelab-lab-") as scratch:
        config = Path(scratch, "config")
        shutil.copytree(package / "lab" / "config", config)
        if lang != "en":
            overrides = config / "labconfig" / "default_setting_overrides.json"
            settings = json.loads(overrides.read_text(encoding="utf-8"))
            settings["tilelab:plugin"]["language"] = lang
            overrides.write_text(json.dumps(settings), encoding="utf-8")
        _prepend("JUPYTER_CONFIG_PATH", config)
        built = package / "labextension"
        if built.is_dir():  # a checkout: what was built last, whether or not it is installed
            shutil.copytree(built, Path(scratch, "data", "labextensions", "tilelab"))
            _prepend("JUPYTER_PATH", Path(scratch, "data"))
        elif not _installed():
            print("tilelab: the side panel was not built into this installation; in a checkout, `make venv` builds it", file=sys.stderr)
        yield


def _installed() -> bool:
    from jupyter_core.paths import jupyter_path

    return any(Path(folder, "tilelab", "package.json").is_file() for folder in jupyter_path("labextensions"))


def _prepend(variable: str, folder: Path) -> None:
    rest = os.environ.get(variable)
    os.environ[variable] = f"{folder}{os.pathsep}{rest}" if rest else str(folder)


def _locale_language() -> str:
    named = os.environ.get("LC_ALL") or os.environ.get("LC_MESSAGES") or os.environ.get("LANG") or ""
    return "zh" if named.lower().startswith("zh") else "en"
