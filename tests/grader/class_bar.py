"""Grade a made-up class through a local Dask cluster, kill a worker midway, and see that nothing is lost.

    python tests/grader/class_bar.py [--submissions 1000] [--workers 2] [--puzzle 2] [--out FOLDER]

Prints one JSON object: submissions, seconds, seconds of processor time, results, and whether a worker was killed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

SEED = 5


def main() -> int:
    """Run it; the exit status is 1 if a result is missing or wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--submissions", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--puzzle", default="2")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        said = run(args.submissions, args.workers, args.puzzle, args.out or Path(folder))
    print(json.dumps(said))
    return 0 if said["results"] == said["submissions"] and said["wrong"] == 0 and said["killed"] else 1


def run(submissions: int, workers: int, puzzle: str, place: Path) -> dict[str, object]:
    """Make the class, the cluster and the killer; grade; compare every result with what it must be."""
    from distributed import Client, LocalCluster

    from tilelab.course import puzzle as find
    from tilelab.grader.classes import grade_class, jobs_of

    spec = find(puzzle).spec
    expected = make_class(spec, submissions, place / "class")
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        killed = threading.Event()

        def progress(done: int, total: int) -> None:
            if done >= total // 2 and not killed.is_set():
                killed.set()
                victim = next(iter(client.run(os.getpid).values()))
                os.kill(victim, signal.SIGKILL)

        jobs = jobs_of(spec, place / "class", sorted((place / "class").iterdir()), None, SEED)
        began = time.monotonic()
        results = grade_class(spec, jobs, place / "out", scheduler=cluster.scheduler_address, progress=progress)
        seconds = time.monotonic() - began
    passed = {r["submission"]: r["report"]["passed"] for r in results}
    return {
        "submissions": submissions,
        "workers": workers,
        "seconds": round(seconds, 1),
        "cpu_seconds": round(sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]), 1),
        "results": len(passed),
        "wrong": sum(passed.get(name) != right for name, right in expected.items()),
        "killed": killed.is_set(),
        "load": os.getloadavg()[0],
    }


def make_class(spec, count: int, folder: Path) -> dict[str, bool]:
    """Write ``count`` submissions as students would: right ones in their own shapes, wrong ones, and some that are no kernel."""
    folder.mkdir(parents=True)
    right = (spec.folder / "solution.py").read_text("utf-8")
    wrong = [(spec.folder / "wrong" / w.file).read_text("utf-8") for w in spec.wrong]
    junk = [f"def {spec.entry}(:\n", "import os\nos._exit(0)\n", "while True:\n    pass\n"]
    rng, expected = random.Random(SEED), {}
    for i in range(count):
        kind = rng.choices(("right", "wrong", "junk"), (70, 26, 4))[0]
        text = {"right": right, "wrong": rng.choice(wrong), "junk": rng.choice(junk[:2] if i % 50 else junk)}[kind]
        text = text.replace("threads=128", f"threads={rng.choice((64, 128, 256))}").replace("bx", rng.choice(("bx", "b", "block_id")))
        text = text.replace("block: int = 256", f"block: int = {rng.choice((128, 256, 512))}")
        name = f"student{i:04d}.py"
        (folder / name).write_text(f"{text}\n# student {i}\n", "utf-8")
        expected[name] = kind == "right"
    return expected


if __name__ == "__main__":
    sys.exit(main())
