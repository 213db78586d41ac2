"""Outlier detection: a replica with late first tokens gets no requests."""

import pytest

from inference.pools.health.outlier_detection import (
    EJECTION_S,
    MAX_CONSECUTIVE_LATE,
    MAX_EJECTION_S,
    LatencyOutlierDetector,
)

# The requests begin at 0 s.
DEADLINE_S = 0.8  # first tokens at this time are still in time
LATE_S = DEADLINE_S + 0.1
AFTER_EJECTION_S = LATE_S + EJECTION_S


def _make_detector(num: int) -> LatencyOutlierDetector[object]:
    """Return a detector with this many requests, which begin at 0 s."""
    detector = LatencyOutlierDetector[object]()
    for request in range(num):
        detector.on_request(request, until_s=DEADLINE_S)
    return detector


def _eject_replica() -> LatencyOutlierDetector[object]:
    """Return a detector that ejected its replica at LATE_S, with no requests waiting."""
    detector = _make_detector(MAX_CONSECUTIVE_LATE)
    for request in range(MAX_CONSECUTIVE_LATE):
        detector.on_first_token(request, LATE_S)
    return detector


def test_responses_in_time_do_not_eject_the_replica() -> None:
    detector = _make_detector(MAX_CONSECUTIVE_LATE)
    for request in range(MAX_CONSECUTIVE_LATE):
        detector.on_first_token(request, DEADLINE_S)

    assert not detector.is_ejected(DEADLINE_S)


def test_requests_waiting_beyond_the_deadline_eject_the_replica() -> None:
    detector = _make_detector(MAX_CONSECUTIVE_LATE)

    assert not detector.is_ejected(DEADLINE_S)
    assert detector.is_ejected(LATE_S)


def test_few_requests_waiting_beyond_the_deadline_do_not_eject_the_replica() -> None:
    detector = _make_detector(MAX_CONSECUTIVE_LATE - 1)

    assert not detector.is_ejected(LATE_S)


def test_waiting_and_late_requests_count_together() -> None:
    detector = _make_detector(MAX_CONSECUTIVE_LATE)
    for request in range(1, MAX_CONSECUTIVE_LATE):
        detector.on_first_token(request, LATE_S)

    assert detector.is_ejected(LATE_S)


def test_late_responses_eject_the_replica() -> None:
    assert _eject_replica().is_ejected(LATE_S)


def test_a_response_in_time_resets_the_count() -> None:
    detector = _make_detector(MAX_CONSECUTIVE_LATE - 1)
    for request in range(MAX_CONSECUTIVE_LATE - 1):
        detector.on_first_token(request, LATE_S)
    detector.on_request("quick", until_s=LATE_S + DEADLINE_S)
    detector.on_first_token("quick", LATE_S)
    detector.on_request("late", until_s=LATE_S + DEADLINE_S)
    detector.on_first_token("late", 2 * LATE_S)

    assert not detector.is_ejected(2 * LATE_S)


def test_requests_abandoned_late_count() -> None:
    detector = _make_detector(MAX_CONSECUTIVE_LATE)
    for request in range(MAX_CONSECUTIVE_LATE):
        detector.on_ended(request, LATE_S)

    assert detector.is_ejected(LATE_S)


def test_requests_abandoned_early_do_not_count() -> None:
    detector = _make_detector(MAX_CONSECUTIVE_LATE)
    for request in range(MAX_CONSECUTIVE_LATE):
        detector.on_ended(request, 0.5 * DEADLINE_S)

    assert not detector.is_ejected(LATE_S)


def test_time_after_the_first_token_does_not_count() -> None:
    detector = _make_detector(MAX_CONSECUTIVE_LATE)
    for request in range(MAX_CONSECUTIVE_LATE):
        detector.on_first_token(request, 0.1)
        detector.on_ended(request, 9.0)

    assert not detector.is_ejected(9.0)


def test_one_trial_request_is_allowed_after_the_ejection() -> None:
    detector = _eject_replica()

    was_ejected = detector.is_ejected(AFTER_EJECTION_S - 0.1)
    is_trial_allowed = not detector.is_ejected(AFTER_EJECTION_S)
    detector.on_request("trial", until_s=AFTER_EJECTION_S + DEADLINE_S)

    assert was_ejected
    assert is_trial_allowed
    assert detector.is_ejected(AFTER_EJECTION_S)


@pytest.mark.parametrize(("took_s", "is_late"), [(0.1, False), (LATE_S, True)])
def test_a_late_trial_request_prolongs_the_ejection_and_one_in_time_ends_it(
    took_s: float, is_late: bool
) -> None:
    detector = _eject_replica()
    detector.on_request("trial", until_s=AFTER_EJECTION_S + DEADLINE_S)
    detector.on_first_token("trial", AFTER_EJECTION_S + took_s)
    detector.on_request("next", until_s=AFTER_EJECTION_S + took_s + DEADLINE_S)

    assert detector.is_ejected(AFTER_EJECTION_S + took_s + 0.1) is is_late


def _ejection_duration_s(detector: LatencyOutlierDetector[object], since_s: float) -> float:
    """Return how long the replica gets no requests, to a tenth of a second."""
    tenths = 0
    while detector.is_ejected(since_s + tenths / 10):
        tenths += 1
    return tenths / 10


def test_each_late_trial_doubles_the_ejection_up_to_a_maximum() -> None:
    detector, now_s = _eject_replica(), LATE_S
    durations_s = []
    for trial in range(5):
        durations_s.append(_ejection_duration_s(detector, now_s))
        now_s += durations_s[-1]
        detector.on_request(trial, until_s=now_s + DEADLINE_S)
        now_s += LATE_S
        detector.on_first_token(trial, now_s)

    assert durations_s == [
        EJECTION_S,
        2 * EJECTION_S,
        4 * EJECTION_S,
        8 * EJECTION_S,
        8 * EJECTION_S,
    ]
    assert durations_s[-1] == MAX_EJECTION_S


def test_concurrent_late_requests_cause_one_ejection() -> None:
    detector = _make_detector(3 * MAX_CONSECUTIVE_LATE)
    for request in range(3 * MAX_CONSECUTIVE_LATE):
        assert detector.is_ejected(LATE_S + request / 10)
        detector.on_first_token(request, LATE_S + request / 10)

    assert (
        _ejection_duration_s(detector, LATE_S + (3 * MAX_CONSECUTIVE_LATE - 1) / 10) == EJECTION_S
    )


def test_a_trial_in_time_resets_the_duration_of_later_ejections() -> None:
    detector = _eject_replica()
    detector.on_request("late", until_s=AFTER_EJECTION_S + DEADLINE_S)
    detector.on_first_token("late", AFTER_EJECTION_S + LATE_S)
    trial_at_s = AFTER_EJECTION_S + LATE_S + 2 * EJECTION_S
    detector.on_request("quick", until_s=trial_at_s + DEADLINE_S)
    detector.on_first_token("quick", trial_at_s)
    for request in range(MAX_CONSECUTIVE_LATE):
        detector.on_request(request, until_s=trial_at_s + DEADLINE_S)
    for request in range(MAX_CONSECUTIVE_LATE):
        detector.on_first_token(request, trial_at_s + LATE_S)

    assert _ejection_duration_s(detector, trial_at_s + LATE_S) == EJECTION_S
