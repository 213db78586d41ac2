"""The seed of random tests.

The default suite uses the same seed in every run. The deep suite (`make test-deep`) draws a seed,
prints it, and passes it to its processes in `CARET_TEST_SEED`. Setting the variable to that value
repeats the run.
"""

import os
from typing import Any, Final

import pytest

SEED_VARIABLE: Final = "CARET_TEST_SEED"
_DEFAULT: Final = 20261120

IS_DEEP: Final = SEED_VARIABLE in os.environ
SEED: Final = int(os.environ.get(SEED_VARIABLE, _DEFAULT))


def scaled(count: int, *, deep: int) -> int:
    """Return how many examples to try: `count` in the default suite, `deep` in the deep one."""
    return deep if IS_DEEP else count


def seeds(count: int, *, deep: int) -> list[Any]:
    """Return the parameters of a test that runs with several seeds.

    The default suite has `count` fixed ones. The deep suite has `deep` others, which differ in
    every run.
    """
    deep_seeds = [pytest.param(SEED + number, marks=pytest.mark.deep) for number in range(deep)]
    return [*range(count), *deep_seeds]
