"""The random-number generators of ``T.rng_init``, ``T.rng_rand`` and ``T.rng_rand_float``: those of cuRAND's device API.

Each lane has its own state; everything is vectorised over lanes, and a mask says which of them draw. The sequences are
those of the published algorithms with cuRAND's seeding, subsequences and offsets:

* Philox4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
* XORWOW: Marsaglia, "Xorshift RNGs", J. Stat. Soft. 8 (14), 2003; subsequences are 2^67 numbers apart.
* MRG32k3a: L'Ecuyer, Oper. Res. 47 (1), 1999; subsequences are 2^76 numbers apart.

Integers agree bit for bit; normal floats within the error of the device's fast sine and logarithm. The compiler may
vectorise draws of float64 uniforms from Philox, which then use 53 random bits each where a single draw uses 32.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from tilelab.errors import InputError

Array: TypeAlias = np.ndarray[Any, Any]

_LOW = np.uint64(0xFFFF_FFFF)
_32 = np.uint64(32)


def rng_init(generator: str, seed: Any, sequence: Any, offset: Any) -> RandomState:
    """Make the state of each lane.

    Args:
        generator: cuRAND's name of the state type, such as ``"curandStatePhilox4_32_10_t"``.
        seed: Per lane or one for all, as integers; also ``sequence`` and ``offset``.
        sequence: Which subsequence the lane draws from.
        offset: How many numbers of it are skipped.

    Raises:
        InputError: ``generator`` is not one of cuRAND's three that TileLang knows.
    """
    kind = _GENERATORS.get(generator)
    if kind is None:
        raise InputError(f"'{generator}' is not a random generator of TileLang", fix=f"Known: {', '.join(_GENERATORS)}")
    seed, sequence, offset = (np.asarray(a).astype(np.uint64) for a in (seed, sequence, offset))
    state: RandomState = kind(*np.atleast_1d(*np.broadcast_arrays(seed, sequence, offset)))
    state.shape = np.broadcast_shapes(seed.shape, sequence.shape, offset.shape)
    return state


class RandomState(ABC):
    """The states of all lanes. ``shape`` is that of the lanes; draws have it, and masks broadcast to it."""

    shape: tuple[int, ...]

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = self._inner = shape  # a single lane is an array of one inside, where scalars would lose their dtype
        self._extra: dict[int, tuple[Array, Array]] = {}  # bits → (is there a second normal, its value)

    @abstractmethod
    def _next(self, mask: Array) -> Array:
        """Draw 32 bits in each lane and advance those of ``mask``."""

    def rand(self, mask: Array | None = None) -> Array:
        """Draw uint32 values: ``T.rng_rand()``."""
        return self._next(self._mask(mask)).reshape(self.shape)

    def rand_float(self, bits: int = 32, dist: str = "uniform", mask: Array | None = None, *, vector: bool = False) -> Array:
        """Draw floats of 32 or 64 ``bits``, ``"uniform"`` in (0, 1] or ``"normal"``: ``T.rng_rand_float()``.

        ``vector``: as one of several that are drawn at once, for which Philox has finer doubles.
        """
        m = self._mask(mask)
        uniform = self._vector64 if vector else self._uniform64
        draw = self._normal(bits, m) if dist == "normal" else uniform(m) if bits == 64 else self._uniform32(m)
        return draw.reshape(self.shape)

    def _mask(self, mask: Array | None) -> Array:
        return np.broadcast_to(np.asarray(True if mask is None else mask), self._inner)

    def _uniform32(self, mask: Array) -> Array:
        x = self._next(mask).astype(np.float32)
        return x * np.float32(2.0**-32) + np.float32(2.0**-33)

    def _uniform64(self, mask: Array) -> Array:
        return _fraction53(self._next(mask), self._next(mask))

    def _vector64(self, mask: Array) -> Array:
        return self._uniform64(mask)

    def _normal(self, bits: int, mask: Array) -> Array:
        """Box–Muller: two normals a time, the second kept for the next call."""
        dtype = np.float64 if bits == 64 else np.float32
        kept, value = self._extra.get(bits, (np.zeros(self._inner, np.bool_), np.zeros(self._inner, dtype)))
        fresh = mask & ~kept
        first, second = self._pair64(fresh) if bits == 64 else self._pair32(fresh)
        result = np.where(kept, value, first).astype(dtype)
        self._extra[bits] = (np.where(mask, ~kept, kept), np.where(fresh, second, value).astype(dtype))
        return result

    def _pair32(self, mask: Array) -> tuple[Array, Array]:
        u = self._uniform32(mask)
        angle = self._next(mask).astype(np.float32) * np.float32(2.0**-32 * 2 * np.pi) + np.float32(2.0**-33 * 2 * np.pi)
        radius = np.sqrt(np.float32(-2) * np.log(u))
        return radius * np.sin(angle), radius * np.cos(angle)

    def _pair64(self, mask: Array) -> tuple[Array, Array]:
        u = _fraction53(self._next(mask), self._next(mask))
        turns = _fraction53(self._next(mask), self._next(mask)) * 2
        radius = np.sqrt(-2 * np.log(u))
        return radius * np.sin(turns * np.pi), radius * np.cos(turns * np.pi)


def _fraction53(x: Array, y: Array) -> Array:
    """A double in (0, 1] from 53 bits of two draws."""
    z = x.astype(np.uint64) ^ (y.astype(np.uint64) << np.uint64(21))
    result: Array = z * 2.0**-53 + 2.0**-54
    return result


# ------------------------------------------------------------------------------------------------ Philox
def philox4x32(counter_low: Array, counter_high: Array, key: Array) -> tuple[Array, Array, Array, Array]:
    """Ten rounds of Philox4x32 on 128-bit counters (two uint64 halves) with 64-bit keys; four uint64 words of 32 bits."""
    c = [counter_low & _LOW, counter_low >> _32, counter_high & _LOW, counter_high >> _32]
    k0, k1 = key & _LOW, key >> _32
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> _32) ^ c[1] ^ k0, p1 & _LOW, (p0 >> _32) ^ c[3] ^ k1, p0 & _LOW]
        k0, k1 = (k0 + np.uint64(0x9E3779B9)) & _LOW, (k1 + np.uint64(0xBB67AE85)) & _LOW
    return c[0], c[1], c[2], c[3]


class _Philox(RandomState):
    def __init__(self, seed: Array, sequence: Array, offset: Array) -> None:
        super().__init__(seed.shape)
        self.key, self.high = seed.copy(), sequence.copy()
        self.low = offset // np.uint64(4)
        self.word = (offset % np.uint64(4)).astype(np.int64)

    def _next(self, mask: Array) -> Array:
        words = philox4x32(self.low, self.high, self.key)
        result = np.choose(self.word, words).astype(np.uint32)
        self.word = np.where(mask, self.word + 1, self.word)
        wrapped = self.word == 4
        self.low = self.low + wrapped.astype(np.uint64)
        self.high = self.high + (wrapped & (self.low == 0)).astype(np.uint64)
        self.word = np.where(wrapped, 0, self.word)
        return result

    def _uniform64(self, mask: Array) -> Array:
        x: Array = self._next(mask) * 2.0**-32 + 2.0**-32  # 32 bits only, and cuRAND adds a whole unit here
        return x

    def _vector64(self, mask: Array) -> Array:
        return _fraction53(self._next(mask), self._next(mask))


# ------------------------------------------------------------------------------------------------ XORWOW
class _Xorwow(RandomState):
    def __init__(self, seed: Array, sequence: Array, offset: Array) -> None:
        super().__init__(seed.shape)
        t0 = np.uint64(1099087573) * ((seed & _LOW) ^ np.uint64(0xAAD26B49)) & _LOW
        t1 = np.uint64(2591861531) * ((seed >> _32) ^ np.uint64(0xF7DCEFDD)) & _LOW
        start = ((123456789, t0, "+"), (362436069, t0, "^"), (521288629, t1, "+"), (88675123, t1, "^"), (5783321, t0, "+"))
        self.v = [((np.uint64(c) + t if how == "+" else np.uint64(c) ^ t) & _LOW).astype(np.uint32) for c, t, how in start]
        self.d = ((np.uint64(6615241) + t0 + t1 + np.uint64(362437) * (offset & _LOW)) & _LOW).astype(np.uint32)
        self._skip(sequence, 67)
        self._skip(offset, 0)

    def _next(self, mask: Array) -> Array:
        v = _xorwow_step(self.v)
        d = self.d + np.uint32(362437)
        self.v = [np.where(mask, new, old) for new, old in zip(v, self.v, strict=True)]
        self.d = np.where(mask, d, self.d)
        result: Array = v[4] + d
        return result

    def _skip(self, count: Array, log2_stride: int) -> None:
        """Advance each lane by ``count << log2_stride`` steps: one linear map over GF(2) a set bit of ``count``."""
        for bit in range(int(count.max()).bit_length() if count.size else 0):
            chosen = (count >> np.uint64(bit)) & np.uint64(1) != 0
            if not chosen.any():
                continue
            table = _xorwow_table(log2_stride + bit)  # (20 bytes of state, 256 values, 5 words)
            picked = [w[chosen] for w in self.v]
            new = np.zeros((picked[0].size, 5), np.uint32)
            for byte in range(20):
                new ^= table[byte, (picked[byte // 4] >> np.uint32(8 * (byte % 4))) & np.uint32(0xFF)]
            for i in range(5):
                self.v[i][chosen] = new[:, i]


def _xorwow_step(v: list[Array]) -> list[Array]:
    t = v[0] ^ (v[0] >> np.uint32(2))
    return [v[1], v[2], v[3], v[4], v[4] ^ (v[4] << np.uint32(4)) ^ t ^ (t << np.uint32(1))]


@lru_cache(maxsize=160)
def _xorwow_matrix(log2_steps: int) -> Array:
    """The 160×160 matrix over GF(2) of ``2**log2_steps`` steps; row i is what bit i of the state becomes."""
    if log2_steps == 0:
        unit = np.eye(160, dtype=np.uint8)
        words = np.packbits(unit, axis=1, bitorder="little").view("<u4")
        after = np.stack(_xorwow_step([words[:, i].copy() for i in range(5)]), axis=1)
        return np.unpackbits(np.ascontiguousarray(after).view(np.uint8), axis=1, bitorder="little")
    half = _xorwow_matrix(log2_steps - 1).astype(np.float32)  # sums of at most 160 ones are exact
    return ((half @ half).astype(np.int64) & 1).astype(np.uint8)


@lru_cache(maxsize=160)
def _xorwow_table(log2_steps: int) -> Array:
    matrix = _xorwow_matrix(log2_steps).reshape(20, 8, 160).astype(np.int64)
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little").astype(np.int64)
    images = (np.einsum("vb,kbo->kvo", bits, matrix) & 1).astype(np.uint8)
    table: Array = np.ascontiguousarray(np.packbits(images, axis=2, bitorder="little")).view("<u4")
    return table


# ------------------------------------------------------------------------------------------------ MRG32k3a
_M1, _M2 = 4294967087, 4294944443
_A1 = ((0, 1, 0), (0, 0, 1), (_M1 - 810728, 1403580, 0))
_A2 = ((0, 1, 0), (0, 0, 1), (_M2 - 1370589, 0, 527612))
_NORM = 2.328306549295727688e-10  # 1 / (m1 + 1)


class _Mrg32k3a(RandomState):
    def __init__(self, seed: Array, sequence: Array, offset: Array) -> None:
        super().__init__(seed.shape)
        given = seed != 0
        x1 = np.where(given, (seed & _LOW) ^ np.uint64(0x55555555), np.uint64(1))
        x2 = np.where(given, (seed >> _32) ^ np.uint64(0xAAAAAAAA), np.uint64(1))
        start = np.uint64(12345)
        self.s1 = [x * start % np.uint64(_M1) for x in (x1, x2, x1)]
        self.s2 = [x * start % np.uint64(_M2) for x in (x2, x1, x2)]
        self._skip(sequence & np.uint64((1 << 51) - 1), 76)
        self._skip(offset, 0)

    def _step(self, mask: Array) -> Array:
        new1, new2 = _apply(_A1, self.s1, _M1), _apply(_A2, self.s2, _M2)
        self.s1 = [np.where(mask, a, b) for a, b in zip(new1, self.s1, strict=True)]
        self.s2 = [np.where(mask, a, b) for a, b in zip(new2, self.s2, strict=True)]
        difference = new1[2].astype(np.int64) - new2[2].astype(np.int64)
        return np.where(difference <= 0, difference + _M1, difference).astype(np.float64)

    def _next(self, mask: Array) -> Array:
        return (self._step(mask) * 1.000000048662).astype(np.uint64).astype(np.uint32)

    def _uniform32(self, mask: Array) -> Array:
        return self._uniform64(mask).astype(np.float32)

    def _uniform64(self, mask: Array) -> Array:
        return self._step(mask) * _NORM

    def _pair32(self, mask: Array) -> tuple[Array, Array]:
        u, angle = self._uniform32(mask), self._uniform32(mask) * np.float32(2 * np.pi)
        radius = np.sqrt(np.float32(-2) * np.log(u))
        return radius * np.sin(angle), radius * np.cos(angle)

    def _pair64(self, mask: Array) -> tuple[Array, Array]:
        u, turns = self._uniform64(mask), self._uniform64(mask) * 2
        radius = np.sqrt(-2 * np.log(u))
        return radius * np.sin(turns * np.pi), radius * np.cos(turns * np.pi)

    def _skip(self, count: Array, log2_stride: int) -> None:
        for bit in range(int(count.max()).bit_length() if count.size else 0):
            chosen = (count >> np.uint64(bit)) & np.uint64(1) != 0
            for name, matrix, modulus in (("s1", _A1, _M1), ("s2", _A2, _M2)):
                old = getattr(self, name)
                new = _apply(_matrix_power(matrix, log2_stride + bit, modulus), old, modulus)
                setattr(self, name, [np.where(chosen, a, b) for a, b in zip(new, old, strict=True)])


_Matrix: TypeAlias = tuple[tuple[int, ...], ...]


def _apply(matrix: _Matrix, state: list[Array], modulus: int) -> list[Array]:
    m = np.uint64(modulus)
    rows = []
    for row in matrix:
        total = np.zeros(state[0].shape, np.uint64)
        for factor, word in zip(row, state, strict=True):
            if factor:
                total = (total + np.uint64(factor) * word % m) % m
        rows.append(total)
    return rows


@lru_cache(maxsize=512)
def _matrix_power(matrix: _Matrix, log2_steps: int, modulus: int) -> _Matrix:
    if log2_steps == 0:
        return matrix
    half = _matrix_power(matrix, log2_steps - 1, modulus)
    return tuple(tuple(sum(half[i][k] * half[k][j] for k in range(3)) % modulus for j in range(3)) for i in range(3))


_GENERATORS: dict[str, type[Any]] = {
    "curandStatePhilox4_32_10_t": _Philox,
    "curandStateXORWOW_t": _Xorwow,
    "curandStateMRG32k3a_t": _Mrg32k3a,
}
