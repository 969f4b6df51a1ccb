"""Random generators against published vectors and their own definitions stepped one number at a time."""

from __future__ import annotations

import numpy as np
import pytest

from tilelab.errors import InputError
from tilelab.sim import random as rng

ALL = ["curandStatePhilox4_32_10_t", "curandStateXORWOW_t", "curandStateMRG32k3a_t"]
PHILOX, XORWOW, MRG = ALL


@pytest.mark.parametrize(
    ("counter", "key", "want"),
    [
        ((0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((2**64 - 1, 2**64 - 1), 2**64 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        ((0x85A308D3243F6A88, 0x0370734413198A2E), 0x299F31D0A4093822, (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
    ],
)
def test_philox_known_answers(counter: tuple[int, int], key: int, want: tuple[int, ...]) -> None:
    """The vectors that come with Random123."""
    words = rng.philox4x32(*(np.array([c], np.uint64) for c in (*counter, key)))
    assert tuple(int(w[0]) for w in words) == want


def test_philox_layout_of_seed_sequence_and_offset() -> None:
    state = rng.rng_init(PHILOX, 0, [0, 0, 0], [0, 1, 4])
    first = state.rand()
    assert first[0] == 0x6627E8D5
    assert first[1] == 0xE169C58D
    words = rng.philox4x32(np.array([1], np.uint64), np.array([0], np.uint64), np.array([0], np.uint64))
    assert first[2] == words[0][0]  # the fifth number opens the next counter
    words = rng.philox4x32(np.array([0], np.uint64), np.array([7], np.uint64), np.array([5 + (9 << 32)], np.uint64))
    state = rng.rng_init(PHILOX, 5 + (9 << 32), 7, 0)
    assert [int(state.rand()) for _ in range(4)] == [int(w[0]) for w in words]


def xorwow_reference(count: int, seed: int = 0) -> list[int]:
    mask = 0xFFFFFFFF
    t0, t1 = 1099087573 * ((seed & mask) ^ 0xAAD26B49) & mask, 2591861531 * ((seed >> 32) ^ 0xF7DCEFDD) & mask
    x, y, z, w, v = 123456789 + t0 & mask, 362436069 ^ t0, 521288629 + t1 & mask, 88675123 ^ t1, 5783321 + t0 & mask
    d, out = 6615241 + t0 + t1 & mask, []
    for _ in range(count):
        t = x ^ (x >> 2)
        x, y, z, w = y, z, w, v
        v = (v ^ (v << 4 & mask)) ^ (t ^ (t << 1 & mask))
        d = d + 362437 & mask
        out.append(d + v & mask)
    return out


def test_xorwow_follows_its_definition() -> None:
    for seed in (0, 1234, 2**40 + 17):
        state = rng.rng_init(XORWOW, seed, 0, 0)
        assert [int(state.rand()) for _ in range(50)] == xorwow_reference(50, seed)


def test_mrg32k3a_known_answers() -> None:
    """The first numbers of L'Ecuyer's RngStreams with its default seed."""
    state = rng.rng_init(MRG, 0, 0, 0)
    got = [float(state.rand_float(64)) for _ in range(3)]
    assert got == pytest.approx([0.127011122046577, 0.318527565396798, 0.309186015583318], abs=1e-13)
    # a subsequence of cuRAND is a substream of RngStreams: the published matrices of 2^76 steps
    assert rng._matrix_power(rng._A1, 76, rng._M1)[0] == (82758667, 1871391091, 4127413238)
    assert rng._matrix_power(rng._A2, 76, rng._M2)[2] == (3859662829, 4292754251, 3708466080)


@pytest.mark.parametrize("generator", ALL)
def test_offsets_and_sequences_are_skips(generator: str) -> None:
    straight = rng.rng_init(generator, 42, 3, 0)
    numbers = [int(straight.rand()) for _ in range(40)]
    skipped = rng.rng_init(generator, 42, 3, np.arange(35))
    assert skipped.rand().tolist() == numbers[:35]
    assert len({int(rng.rng_init(generator, 42, s, 0).rand()) for s in range(200)}) > 195
    lanes = rng.rng_init(generator, 42, np.arange(64).reshape(8, 8), 0).rand()
    assert lanes[5, 6] == rng.rng_init(generator, 42, 46, 0).rand()


def test_xorwow_sequences_are_two_to_the_67_apart() -> None:
    """2^67 steps composed from a smaller number of larger ones, applied to the state by plain matrix products."""
    a, b = rng._xorwow_matrix(33).astype(int), rng._xorwow_matrix(34).astype(int)
    product = np.linalg.matrix_power(a, 1)
    for _ in range(34):  # (2^33 steps) squared 34 times
        product = product @ product & 1
    assert np.array_equal(product, rng._xorwow_matrix(67))
    assert np.array_equal(a @ a & 1, b)


@pytest.mark.parametrize("generator", ALL)
def test_masked_lanes_do_not_advance(generator: str) -> None:
    state = rng.rng_init(generator, 1, np.arange(4), 0)
    other = rng.rng_init(generator, 1, np.arange(4), 0)
    mask = np.array([True, False, True, False])
    state.rand(mask)
    both = [other.rand(), other.rand()]
    assert state.rand().tolist() == np.where(mask, both[1], both[0]).tolist()


@pytest.mark.parametrize("generator", ALL)
@pytest.mark.parametrize("bits", [32, 64])
def test_distributions(generator: str, bits: int) -> None:
    state = rng.rng_init(generator, 7, np.arange(20_000), 0)
    u = state.rand_float(bits, "uniform")
    assert u.dtype == np.dtype(f"f{bits // 8}")
    assert u.min() > 0
    assert u.max() <= 1
    assert abs(u.mean() - 0.5) < 0.01
    assert abs(u.var() - 1 / 12) < 0.003
    first, second = state.rand_float(bits, "normal"), state.rand_float(bits, "normal")
    assert first.dtype == np.dtype(f"f{bits // 8}")
    for n in (first, second):
        assert abs(n.mean()) < 0.03
        assert abs(n.std() - 1) < 0.02
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.03


def test_normals_come_in_pairs_from_two_draws() -> None:
    state, plain = rng.rng_init(PHILOX, 3, 0, 0), rng.rng_init(PHILOX, 3, 0, 0)
    a, b = float(state.rand_float(32, "normal")), float(state.rand_float(32, "normal"))
    x, y = int(plain.rand()), int(plain.rand())
    radius = np.sqrt(-2 * np.log((x + 0.5) / 2**32))
    assert a == pytest.approx(radius * np.sin(2 * np.pi * (y + 0.5) / 2**32), rel=1e-5)
    assert b == pytest.approx(radius * np.cos(2 * np.pi * (y + 0.5) / 2**32), rel=1e-5)
    assert int(state.rand()) == int(plain.rand())  # and nothing else was drawn


def test_unknown_generator() -> None:
    with pytest.raises(InputError, match="curandStateMtgp32"):
        rng.rng_init("curandStateMtgp32_t", 0, 0, 0)
