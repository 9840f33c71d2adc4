"""cc/fixed.h against exact arithmetic: Python's integers, and decimals of 60 digits."""

from __future__ import annotations

import ctypes
import math
import subprocess
from collections.abc import Callable
from decimal import Decimal, localcontext
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fullpipe.base.installed import shipped

U32, S32, U64, S64 = ctypes.c_uint32, ctypes.c_int32, ctypes.c_uint64, ctypes.c_int64
#: Function -> its result, and its arguments with their names in C.
FUNCTIONS = {
    "cc_log2": (U32, [(U64, "u64")]),
    "cc_log2_q16": (U32, [(U64, "u64")]),
    "cc_exp2_q16": (U64, [(U32, "u32")]),
    "cc_sqrt": (U32, [(U64, "u64")]),
    "cc_cbrt": (U32, [(U64, "u64")]),
    "cc_div_s64": (S64, [(S64, "s64"), (S64, "s64")]),
    "cc_div_s32": (S32, [(S32, "s32"), (S32, "s32")]),
    "cc_mul_shift": (U64, [(U64, "u64"), (U32, "u32"), (U32, "u32")]),
    "cc_mul_shift_u32": (U32, [(U64, "u64"), (U32, "u32"), (U32, "u32")]),
    "cc_ewma": (U64, [(U64, "u64"), (U64, "u64"), (U32, "u32")]),
    "cc_random_start": (U32, [(U32, "u32")]),
}
_C = {U32: "u32", S32: "s32", U64: "u64", S64: "s64"}

#: All magnitudes alike, with the values around each power of two.
u64 = st.builds(
    lambda bits, low, off: min(max((1 << bits | low & (1 << bits) - 1) + off, 0), 2**64 - 1),
    st.integers(0, 63), st.integers(0, 2**63), st.sampled_from([0, 0, -1, 1]),
) | st.sampled_from([0, 1, 2**64 - 1])  # fmt: skip
s64 = st.builds(lambda a, sign: max(min(sign * a, 2**63 - 1), -(2**63)), u64,
                st.sampled_from([1, -1]))  # fmt: skip


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., int]:
    folder = tmp_path_factory.mktemp("fixed")
    lines = ['#include "fixed.h"']
    for name, (result, arguments) in FUNCTIONS.items():
        declared = ", ".join(f"{kind} a{i}" for i, (_, kind) in enumerate(arguments))
        passed = ", ".join(f"a{i}" for i in range(len(arguments)))
        lines.append(f"{_C[result]} of_{name}({declared}) {{ return {name}({passed}); }}")
    source: Path = folder / "fixed.c"
    source.write_text("\n".join(lines))
    library = folder / "fixed.so"
    build = ["cc", "-std=c11", "-O2", "-shared", "-fPIC", f"-I{shipped('cc')}", str(source), "-o",
             str(library)]  # fmt: skip
    subprocess.run(build, check=True)
    loaded = ctypes.CDLL(str(library))

    def call(name: str, *values: int) -> int:
        result, arguments = FUNCTIONS[name]
        function = loaded[f"of_{name}"]
        function.restype, function.argtypes = result, [kind for kind, _ in arguments]
        return int(function(*values))

    return call


@given(u64)
def test_the_logarithm_is_the_floor(fixed: Callable[..., int], value: int) -> None:
    assert fixed("cc_log2", value) == max(value.bit_length() - 1, 0)


@given(u64.filter(bool))
@example(2**58)
def test_the_logarithm_with_a_fraction_is_never_above_and_less_than_two_steps_below(
    fixed: Callable[..., int], value: int
) -> None:
    with localcontext() as context:
        context.prec = 60
        exact = Decimal(value).ln() / Decimal(2).ln() * 65536
        # The decimals are themselves rounded, which shows at powers of two.
        assert exact - 2 < fixed("cc_log2_q16", value) <= exact + Decimal("1e-40")


@given(st.integers(0, 48 * 65536 - 1))
def test_a_power_of_two_is_off_by_a_relative_2_to_the_minus_26_and_rounded_down(
    fixed: Callable[..., int], exponent: int
) -> None:
    with localcontext() as context:
        context.prec = 60
        exact = Decimal(2) ** (Decimal(exponent) / 65536) * 65536
        error = exact / 2**26
        assert exact - error - 1 < fixed("cc_exp2_q16", exponent) <= exact + error


@given(u64, st.sampled_from([2, 3]), st.sampled_from([-1, 0, 1]))
def test_roots_are_floors_also_beside_squares_and_cubes(
    fixed: Callable[..., int], value: int, power: int, off: int
) -> None:
    name = "cc_sqrt" if power == 2 else "cc_cbrt"
    root = _root(value, power)
    for one in (value, min(max(root**power + off, 0), 2**64 - 1)):
        assert fixed(name, one) == _root(one, power)


def _root(value: int, power: int) -> int:
    root = math.isqrt(value) if power == 2 else round(value ** (1 / 3))
    while root**power > value:
        root -= 1
    while (root + 1) ** power <= value:
        root += 1
    return root


@given(s64, s64, st.sampled_from([32, 64]))
@example(-(2**63), -1, 64)
@example(-(2**31), -1, 32)
@example(7, 0, 64)
def test_signed_division_rounds_towards_zero(
    fixed: Callable[..., int], a: int, b: int, bits: int
) -> None:
    half = 1 << bits - 1
    a, b = ((value + half) % (2 * half) - half for value in (a, b))
    exact = 0 if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    assert fixed(f"cc_div_s{bits}", a, b) == (exact + half) % (2 * half) - half


@given(st.integers(0, 2**40), st.lists(st.integers(0, 2**32), max_size=50), st.integers(1, 12))
def test_an_average_stays_among_its_samples_and_reaches_a_constant(
    fixed: Callable[..., int], first: int, samples: list[int], shift: int
) -> None:
    scaled = first << shift
    for sample in samples:
        scaled = fixed("cc_ewma", scaled, sample, shift)
        assert min(first, *samples) <= scaled >> shift <= max(first, *samples)
    for _ in range(60 << shift if shift < 5 else 0):
        scaled = fixed("cc_ewma", scaled, 12345, shift)
    assert shift >= 5 or scaled >> shift == 12345


@given(u64, st.integers(0, 2**32 - 1), st.integers(0, 40))
@example(2**64 - 1, 2**23, 40)
@example(2**48, 2**32 - 1, 10)
def test_a_wide_product_is_exact_and_the_narrow_one_stops_at_its_end(
    fixed: Callable[..., int], a: int, b: int, shift: int
) -> None:
    exact = a * b >> shift
    if b << shift < 2**64:
        assert fixed("cc_mul_shift_u32", a, b, shift) == min(exact, 2**32 - 1)
        if exact < 2**64:
            assert fixed("cc_mul_shift", a, b, shift) == exact


def test_seeds_that_differ_in_a_bit_give_states_that_differ_in_half_of_theirs(
    fixed: Callable[..., int],
) -> None:
    seeds = [*range(300), 0x9E3779B9, 2**32 - 1]
    states = [fixed("cc_random_start", seed) for seed in seeds]
    assert len(set(states)) >= len(seeds) - 1
    assert 0 not in states
    flips = [
        (fixed("cc_random_start", seed) ^ fixed("cc_random_start", seed ^ 1 << bit)).bit_count()
        for seed in range(64)
        for bit in range(32)
    ]
    assert 15 < sum(flips) / len(flips) < 17
