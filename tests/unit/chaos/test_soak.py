"""A soak test fits a line to the samples of a process, to detect growing memory or a
growing number of file descriptors.
"""

from dataclasses import replace

import pytest

from tests.chaos.resource_usage import ProcessResources
from tests.chaos.soak import Sample, fit_trend


def _samples(*, mb_each: float = 0.0, descriptors_each: float = 0.0) -> list[Sample]:
    """Return a hundred samples from 1,000 s on, a second apart; every other one is slightly higher.

    `mb_each` and `descriptors_each` are the growth from one sample to the next. A hundred times 0.1
    is more than the growth that counts as flat.
    """
    return [
        Sample(
            at_s=1_000.0 + number,
            resources=ProcessResources(
                memory_mb=100.0 + number * mb_each + number % 2,
                descriptors=50 + round(number * descriptors_each) + number % 2,
                sockets=0,
                threads=1,
            ),
        )
        for number in range(100)
    ]


def test_fluctuation_is_flat() -> None:
    assert fit_trend(_samples(), settled_s=0.0).is_flat


@pytest.mark.parametrize("growth", [{"mb_each": 0.1}, {"descriptors_each": 0.1}])
def test_steady_growth_is_not_flat(growth: dict[str, float]) -> None:
    assert not fit_trend(_samples(**growth), settled_s=0.0).is_flat


def test_shrinking_is_flat() -> None:
    assert fit_trend(_samples(mb_each=-0.1, descriptors_each=-0.1), settled_s=0.0).is_flat


def test_growth_is_measured_over_the_whole_time() -> None:
    growth = fit_trend(_samples(mb_each=0.1), settled_s=0.0)

    assert growth.more_memory_mb == pytest.approx(9.9, abs=0.1)


def test_growth_while_caches_fill_appears_only_in_course_mb() -> None:
    filling = [replace(sample, at_s=sample.at_s - 100.0) for sample in _samples(mb_each=0.5)]
    flat = [
        replace(sample, resources=replace(sample.resources, memory_mb=150.0))
        for sample in _samples()
    ]

    # The last `filling` sample is at 999 s. The trend uses only later samples, and `course_mb` uses
    # all samples.
    growth = fit_trend([*filling, *flat], settled_s=999.0)

    assert growth.more_memory_mb == 0.0
    assert growth.course_mb[0] < 105.0  # `filling` begins at 100 MB
    assert growth.course_mb[-1] == 150.0
