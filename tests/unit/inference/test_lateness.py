"""Outlier detection: a replica gets no requests while its first tokens are late."""

import pytest

from inference.pools.health.outlier_detection import (
    EJECTION_S,
    MAX_CONSECUTIVE_LATE,
    MAX_EJECTION_S,
    LatencyOutlierDetector,
)

LATE_S = 0.8
LATER_S = LATE_S + 0.1
RESTED_S = LATER_S + EJECTION_S


def _asked_by(num: int) -> LatencyOutlierDetector[object]:
    """Start this many requests at once."""
    lateness = LatencyOutlierDetector[object]()
    for request in range(num):
        lateness.on_request(request, until_s=LATE_S)
    return lateness


def _late() -> LatencyOutlierDetector[object]:
    """Return a detector that ejected its replica at LATER_S, with no requests waiting."""
    lateness = _asked_by(MAX_CONSECUTIVE_LATE)
    for request in range(MAX_CONSECUTIVE_LATE):
        lateness.on_first_token(request, LATER_S)
    return lateness


def test_who_answers_in_time_is_not_late() -> None:
    lateness = _asked_by(MAX_CONSECUTIVE_LATE)
    for request in range(MAX_CONSECUTIVE_LATE):
        lateness.on_first_token(request, LATE_S)

    assert not lateness.is_ejected(LATE_S)


def test_who_is_waited_for_is_late_before_it_answers() -> None:
    lateness = _asked_by(MAX_CONSECUTIVE_LATE)

    assert not lateness.is_ejected(LATE_S)
    assert lateness.is_ejected(LATER_S)


def test_one_late_answer_may_be_a_long_prompt() -> None:
    lateness = _asked_by(MAX_CONSECUTIVE_LATE - 1)

    assert not lateness.is_ejected(LATER_S)


def test_those_who_wait_count_with_those_who_have_waited() -> None:
    lateness = _asked_by(MAX_CONSECUTIVE_LATE)
    for request in range(1, MAX_CONSECUTIVE_LATE):
        lateness.on_first_token(request, LATER_S)

    assert lateness.is_ejected(LATER_S)


def test_late_answers_are_no_end_of_it() -> None:
    assert _late().is_ejected(LATER_S)


def test_a_quick_one_in_between_is() -> None:
    lateness = _asked_by(MAX_CONSECUTIVE_LATE - 1)
    for request in range(MAX_CONSECUTIVE_LATE - 1):
        lateness.on_first_token(request, LATER_S)
    lateness.on_request("quick", until_s=LATER_S + LATE_S)
    lateness.on_first_token("quick", LATER_S)
    lateness.on_request("late", until_s=LATER_S + LATE_S)
    lateness.on_first_token("late", 2 * LATER_S)

    assert not lateness.is_ejected(2 * LATER_S)


def test_who_has_left_has_waited_too() -> None:
    lateness = _asked_by(MAX_CONSECUTIVE_LATE)
    for request in range(MAX_CONSECUTIVE_LATE):
        lateness.on_abandoned(request, LATER_S)

    assert lateness.is_ejected(LATER_S)


def test_who_leaves_soon_says_nothing() -> None:
    lateness = _asked_by(MAX_CONSECUTIVE_LATE)
    for request in range(MAX_CONSECUTIVE_LATE):
        lateness.on_abandoned(request, 0.5 * LATE_S)

    assert not lateness.is_ejected(LATER_S)


def test_the_rest_of_an_answer_may_take_long() -> None:
    lateness = _asked_by(MAX_CONSECUTIVE_LATE)
    for request in range(MAX_CONSECUTIVE_LATE):
        lateness.on_first_token(request, 0.1)
        lateness.on_abandoned(request, 9.0)

    assert not lateness.is_ejected(9.0)


def test_after_its_rest_one_request_tries_it() -> None:
    lateness = _late()

    before = lateness.is_ejected(RESTED_S - 0.1), lateness.is_ejected(RESTED_S)
    lateness.on_request("trial", until_s=RESTED_S + LATE_S)

    assert before == (True, False)
    assert lateness.is_ejected(RESTED_S)


@pytest.mark.parametrize(("took_s", "is_late"), [(0.1, False), (LATER_S, True)])
def test_what_becomes_of_that_one_decides(took_s: float, is_late: bool) -> None:
    lateness = _late()
    lateness.on_request("trial", until_s=RESTED_S + LATE_S)
    lateness.on_first_token("trial", RESTED_S + took_s)
    lateness.on_request("next", until_s=RESTED_S + took_s + LATE_S)

    assert lateness.is_ejected(RESTED_S + took_s + 0.1) is is_late


def _rested_s(lateness: LatencyOutlierDetector[object], since_s: float) -> float:
    """Return how long the replica gets no requests, to a tenth of a second."""
    tenths = 0
    while lateness.is_ejected(since_s + tenths / 10):
        tenths += 1
    return tenths / 10


def test_each_late_trial_doubles_the_rest() -> None:
    lateness, now_s = _late(), LATER_S
    rests_s = []
    for trial in range(5):
        rests_s.append(_rested_s(lateness, now_s))
        now_s += rests_s[-1]
        lateness.on_request(trial, until_s=now_s + LATE_S)
        now_s += LATER_S
        lateness.on_first_token(trial, now_s)

    assert rests_s == [EJECTION_S, 2 * EJECTION_S, 4 * EJECTION_S, 8 * EJECTION_S, 8 * EJECTION_S]
    assert rests_s[-1] == MAX_EJECTION_S


def test_several_who_wait_at_once_make_one_rest() -> None:
    lateness = _asked_by(3 * MAX_CONSECUTIVE_LATE)
    for request in range(3 * MAX_CONSECUTIVE_LATE):
        assert lateness.is_ejected(LATER_S + request / 10)
        lateness.on_first_token(request, LATER_S + request / 10)

    assert _rested_s(lateness, LATER_S + (3 * MAX_CONSECUTIVE_LATE - 1) / 10) == EJECTION_S


def test_one_in_time_makes_the_next_rest_short_again() -> None:
    lateness = _late()
    lateness.on_request("late", until_s=RESTED_S + LATE_S)
    lateness.on_first_token("late", RESTED_S + LATER_S)
    tried_s = RESTED_S + LATER_S + 2 * EJECTION_S
    lateness.on_request("quick", until_s=tried_s + LATE_S)
    lateness.on_first_token("quick", tried_s)
    for request in range(MAX_CONSECUTIVE_LATE):
        lateness.on_request(request, until_s=tried_s + LATE_S)
    for request in range(MAX_CONSECUTIVE_LATE):
        lateness.on_first_token(request, tried_s + LATER_S)

    assert _rested_s(lateness, tried_s + LATER_S) == EJECTION_S
