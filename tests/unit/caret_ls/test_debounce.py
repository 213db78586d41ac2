"""The delay between a key press and the request for a suggestion.

The debouncer has an allowance of requests that are sent without a delay: each request uses one, and
each key adds a third of one. A fresh line is blank before the cursor.
"""

from typing import Final

import pytest

from caret_ls.debounce import (
    MAX_ALLOWANCE,
    MAX_DELAY_MS,
    MIN_DELAY_MS,
    USUAL_RESPONSE_MS,
    Debouncer,
)

_DELAY_PER_GAP: Final = 1.5  # the delay is one and a half times the usual gap between keys
_NUM_KEYS: Final = 12  # the debouncer computes the usual gap from this many keys
_NUM_RESPONSES: Final = 8  # the debouncer computes the usual response time from this many responses
_PAUSE_S: Final = 5.0  # a gap of more than a second is a pause, and does not change the usual gap


def make_debouncer(*, gap_s: float, num_keys: int = _NUM_KEYS) -> tuple[Debouncer, float]:
    """Return a debouncer that has no allowance left, and the time of the last of its keys."""
    debouncer = Debouncer()
    for number in range(num_keys):
        debouncer.on_keystroke(number * gap_s)
    _spend_allowance(debouncer)
    return debouncer, (num_keys - 1) * gap_s


def _spend_allowance(debouncer: Debouncer) -> None:
    for _ in range(int(MAX_ALLOWANCE)):
        debouncer.on_request()


def delay_ms(debouncer: Debouncer, now_s: float, **flags: bool) -> float:
    """Return the delay of a request: automatic and in a line with text, unless `flags` differ."""
    request_flags = {"is_invoked": False, "is_fresh_line": False} | flags
    return round(debouncer.delay_s(now_s, **request_flags) * 1000, 3)


def test_without_a_usual_gap_the_delay_is_the_minimum() -> None:
    debouncer, now_s = make_debouncer(gap_s=_PAUSE_S)

    assert delay_ms(debouncer, now_s) == MIN_DELAY_MS


def test_time_since_the_last_key_shortens_the_delay() -> None:
    debouncer, now_s = make_debouncer(gap_s=_PAUSE_S)

    assert delay_ms(debouncer, now_s + 0.05) == MIN_DELAY_MS - 50
    assert delay_ms(debouncer, now_s + 0.2) == 0


def test_the_delay_for_a_fast_typist_covers_the_gap_between_keys() -> None:
    debouncer, now_s = make_debouncer(gap_s=0.12)

    assert delay_ms(debouncer, now_s) == pytest.approx(_DELAY_PER_GAP * 120)


def test_a_long_pause_does_not_change_the_typing_rate() -> None:
    debouncer, now_s = make_debouncer(gap_s=0.1, num_keys=6)
    debouncer.on_keystroke(now_s + 30)

    assert delay_ms(debouncer, now_s + 30) == pytest.approx(_DELAY_PER_GAP * 100)


@pytest.mark.parametrize("option", ["is_invoked", "is_fresh_line"])
def test_invoked_requests_and_fresh_lines_are_not_delayed(option: str) -> None:
    debouncer, now_s = make_debouncer(gap_s=0.18)

    assert delay_ms(debouncer, now_s, **{option: True}) == 0


def test_requests_are_not_delayed_while_some_allowance_is_left() -> None:
    debouncer = Debouncer()
    debouncer.on_keystroke(1.0)

    for _ in range(int(MAX_ALLOWANCE)):
        assert delay_ms(debouncer, 1.0) == 0
        debouncer.on_request()

    assert delay_ms(debouncer, 1.0) == MIN_DELAY_MS


def test_a_few_keys_add_the_allowance_for_a_request() -> None:
    debouncer, now_s = make_debouncer(gap_s=0.18)

    for number in range(1, 5):  # four keys add more than one request
        debouncer.on_keystroke(now_s + number * 0.18)

    assert delay_ms(debouncer, now_s + 4 * 0.18) == 0


def test_requests_are_delayed_while_responses_come_after_the_next_key() -> None:
    debouncer, gap_s = Debouncer(), 0.08
    for number in range(_NUM_KEYS):
        debouncer.on_keystroke(number * gap_s)
    for _ in range(_NUM_RESPONSES):
        debouncer.on_response(100.0)  # longer than the gap of 80 ms

    assert delay_ms(debouncer, (_NUM_KEYS - 1) * gap_s) > 0


def test_a_longer_minimum_delay_applies_to_the_first_key() -> None:
    debouncer = Debouncer(min_delay_ms=400.0)
    debouncer.on_keystroke(1.0)

    assert delay_ms(debouncer, 1.0) == 400


def test_there_is_no_delay_before_the_first_key() -> None:
    assert delay_ms(Debouncer(), 100.0) == 0


def test_slow_responses_increase_the_delay() -> None:
    debouncer, now_s = make_debouncer(gap_s=_PAUSE_S)
    for _ in range(_NUM_RESPONSES):
        debouncer.on_response(300.0)

    assert delay_ms(debouncer, now_s) == MIN_DELAY_MS + (300 - USUAL_RESPONSE_MS)


def test_usual_responses_do_not_change_the_delay() -> None:
    debouncer, now_s = make_debouncer(gap_s=_PAUSE_S)
    for _ in range(_NUM_RESPONSES):
        debouncer.on_response(100.0)

    assert delay_ms(debouncer, now_s) == MIN_DELAY_MS


def test_rejected_suggestions_increase_the_delay_until_one_is_accepted() -> None:
    debouncer, now_s = make_debouncer(gap_s=_PAUSE_S)

    debouncer.on_rejected()
    debouncer.on_rejected()
    delay_after_rejections_ms = delay_ms(debouncer, now_s)
    debouncer.on_accepted()

    assert delay_after_rejections_ms == pytest.approx(1.2 * MIN_DELAY_MS)  # +10% per rejection
    assert delay_ms(debouncer, now_s) == MIN_DELAY_MS


def test_the_delay_is_bounded() -> None:
    debouncer, now_s = make_debouncer(gap_s=0.9)
    for _ in range(20):
        debouncer.on_response(10_000.0)
        debouncer.on_rejected()

    assert delay_ms(debouncer, now_s) == MAX_DELAY_MS


def test_a_minimum_delay_set_later_may_exceed_the_maximum() -> None:
    debouncer, now_s = make_debouncer(gap_s=_PAUSE_S)
    debouncer.min_delay_ms = 1_000

    assert delay_ms(debouncer, now_s) == 1_000
