"""The cost of waking up: the CPU time of the same work with and without pauses.

A core that sleeps between two bursts of work wakes slowly, raises its clock frequency slowly and
must refill its caches. A gateway at a moderate request rate works in such bursts.
"""

import json
import time
from typing import Final

from tests.benchmarks.processes import Cores, pinned_to
from tests.benchmarks.results import Report, median, rounded, windows

_BURST_INTERVAL_S: Final = 0.005  # the interval of requests at 200/s
_ROUNDS: Final = 5
_ROUND_S: Final = 0.6
_WORK: Final = [{"text": "x" * 30, "number": number} for number in range(60)]
_REPETITIONS: Final = 10  # repetitions of `_WORK` in a burst; a burst takes half a millisecond


def report_bursts(report: Report, *, cores: Cores) -> None:
    """Report the CPU time of work every 5 ms as a multiple of its CPU time without pauses.

    Rounds with and without pauses alternate.
    """
    with pinned_to(cores):
        rounds = [
            (_measure_burst_ms(pause=True), _measure_burst_ms(pause=False)) for _ in range(_ROUNDS)
        ]
    ratios = [paused / busy for paused, busy in rounds]
    report.figure(
        "machine.bursts",
        median(ratios),
        "times the CPU",
        windows=windows(ratios),
        every_ms=_BURST_INTERVAL_S * 1000,
        burst_ms=rounded(median([busy for _, busy in rounds])),
    )


def _measure_burst_ms(*, pause: bool) -> float:
    """Return the CPU time of a burst."""
    began_s, spent_s, num_bursts = time.perf_counter(), time.process_time(), 0
    while (now_s := time.perf_counter()) < began_s + _ROUND_S:
        if pause and (wait_s := began_s + num_bursts * _BURST_INTERVAL_S - now_s) > 0:
            time.sleep(wait_s)
        for _ in range(_REPETITIONS):
            json.loads(json.dumps(_WORK))
        num_bursts += 1
    return 1000 * (time.process_time() - spent_s) / num_bursts
