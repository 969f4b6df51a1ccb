"""``puzzle.toml`` as records; :mod:`tilelab.grader.schema` reads and validates it, ``puzzles/SCHEMA.md`` documents it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tilelab.grader import shapes

KINDS = ("kernel", "layout", "debug")
ROLES = ("in", "inout", "out")
#: Named figures that a puzzle can count or require → what is needed to know them: ``"program"`` (the captured Program and its simulation),
#: ``"lowering"``.
FIGURES: Mapping[str, str] = {
    "bytes_moved": "program",
    "bytes_read": "program",
    "bytes_written": "program",
    "wave_bytes": "program",
    "launches": "program",
    "blocks": "program",
    "flops": "program",
    "diff": "program",
    "registers": "program",  # of a layout: elements that a thread holds
    "smem_bytes": "lowering",
    "threads": "lowering",
    "tensor_core": "lowering",
    "occupancy": "lowering",
    "wavefronts": "lowering",
    "excess_wavefronts": "lowering",
    "shared_vector_bytes": "lowering",
    "sectors": "lowering",
    "excess_sectors": "lowering",
    "global_vector_bytes": "lowering",
    "overlap": "program",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One tensor of the entry's signature; a scalar has an empty shape.

    ``low`` and ``high`` bound drawn integers (shape expressions; high excluded). ``rtol`` and ``atol`` override the puzzle's tolerance.
    """

    name: str
    dtype: str
    shape: tuple[str | int, ...]
    role: str = "in"
    low: str | int = 0
    high: str | int = 4
    rtol: float | None = None
    atol: float | None = None

    def extents(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape for given sizes."""
        return tuple(shapes.evaluate(e, sizes) for e in self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlwaysCase:
    """A case that every submission meets: its sizes, the kind of its inputs, and its weight."""

    sizes: Mapping[str, int]
    inputs: str = "random"
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Cases drawn from a seed: ``count`` of them, each size from its range or choices, each input kind in turn."""

    count: int
    ranges: Mapping[str, tuple[int, ...]]  # a tuple is the choices; ranges are expanded lazily by ``steps``
    steps: Mapping[str, tuple[int, int, int]]  # name → (low, high inclusive, step)
    inputs: tuple[str, ...] = ("random",)
    weight: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """``|got − want| ≤ atol + rtol · s``, s being ``|want|``, or what the oracle's ``magnitude`` returns."""

    rtol: float = 0.0
    atol: float = 0.0
    relative_to: str = "want"


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """One counted figure: the starter's, the best known, and the least that honest work can reach."""

    name: str
    start: float
    best: float
    floor: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A figure that a right answer keeps within bounds: part of being correct, not of the points for counts."""

    name: str
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How a puzzle is timed on a GPU.

    Attributes:
        sizes: The shapes that are timed; the ratio is the geometric mean over them.
        baseline: The function of ``oracle.py`` that takes the inputs as torch tensors on the device, and is timed in the same run.
        passing: Ratio (baseline's time over the kernel's) from which points are earned.
        full: Ratio that earns them all.
    """

    sizes: tuple[Mapping[str, int], ...]
    baseline: str = "baseline"
    passing: float = 0.5
    full: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutGoal:
    """What the function of a layout puzzle returns: a ``"shared"`` layout or a ``"fragment"``, of a shape and dtype."""

    kind: str
    shape: tuple[str | int, ...]
    dtype: str = "float16"
    threads: int = 0
    injective: bool = True

    def extents(self, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """Return the shape for given sizes."""
        return tuple(shapes.evaluate(e, sizes) for e in self.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class DebugGoal:
    """How a fix is measured: ``best`` changed statements earn all points, ``rewrite`` (0: as many as the broken Program has) none."""

    best: int = 1
    rewrite: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    """A wrong answer that is shipped, and the finding code or the case (``"N = 129"``) it must fail with."""

    file: str
    fails: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    """All that ``puzzle.toml`` says."""

    id: str
    title: Mapping[str, str]
    idea: Mapping[str, str]
    part: str
    kind: str
    entry: str
    arguments: tuple[Tensor, ...]
    returns: tuple[Tensor, ...]
    arch: str
    min_arch: str
    tilelang: str
    visible: tuple[Mapping[str, int], ...]
    always: tuple[AlwaysCase, ...]
    draw: Draw
    tolerance: Tolerance
    count_sizes: Mapping[str, int]
    counts: tuple[Count, ...]
    allowed: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    launches: int = 1
    needs: tuple[str, ...] = ()
    teaches: tuple[str, ...] = ()
    hints: int = 3
    wrong: tuple[Wrong, ...] = ()
    parameters: tuple[str, ...] = ()
    require: tuple[Bound, ...] = ()
    speed: Speed | None = None
    layout: LayoutGoal | None = None
    debug: DebugGoal = DebugGoal()
    steps: int = 2_000_000
    folder: Path = Path()

    @property
    def sizes(self) -> tuple[str, ...]:
        """The size names, in the order in which the puzzle gives them."""
        return tuple(self.count_sizes)

    def tolerance_of(self, output: str) -> Tolerance:
        """Return the tolerance of one output."""
        own = next((t for t in (*self.returns, *self.arguments) if t.name == output), None)
        if own is None or own.rtol is own.atol is None:
            return self.tolerance
        rtol = self.tolerance.rtol if own.rtol is None else own.rtol
        atol = self.tolerance.atol if own.atol is None else own.atol
        return Tolerance(rtol=rtol, atol=atol, relative_to=self.tolerance.relative_to)

    @property
    def number(self) -> int:
        """The puzzle's number on the road."""
        return int(self.id.split("_", 1)[0])
