from caret.contracts.policy import Mode
from caret.contracts.usage import decode_records
from caret.foundation.ids import RequestId
from inference.recording.slowest_requests import (
    KEPT_S,
    MAX_RECORDS,
    SlowestRequests,
    SlowestRequestsJournal,
)
from tests.fakes.clock import FakeClock
from tests.fakes.completions import make_completion, make_slow
from tests.fakes.journal import FakeJournal
from tests.fakes.usage import make_record


def _noted(*first_token_ms: float) -> tuple[FakeClock, SlowestRequests]:
    clock = FakeClock()
    slowest = SlowestRequests(clock)
    for each in first_token_ms:
        slowest.add(make_slow(each))
    return clock, slowest


def test_what_kept_its_target_is_not_there() -> None:
    _, slowest = _noted(99.0, 100.0)

    assert slowest.records() == []


def test_the_slowest_by_its_own_target_is_first() -> None:
    _, slowest = _noted(250.0, 400.0)
    slowest.add(make_slow(3_000.0, mode=Mode.CHAT))

    assert [record.first_token_ms for record in slowest.records()] == [400.0, 250.0, 3_000.0]


def test_what_was_given_up_before_its_first_token_is_as_slow_as_it_waited() -> None:
    _, slowest = _noted()

    slowest.add(make_completion(first_token_ms=None, engine_ms=None, total_ms=900.0))

    assert [record.total_ms for record in slowest.records()] == [900.0]


def test_nobody_is_named() -> None:
    _, slowest = _noted(300.0)

    (record,) = slowest.records()

    assert (record.user_id, record.key_id) == (None, "")


def test_many_are_bounded_and_the_slowest_stay() -> None:
    clock, slowest = _noted()

    for slot in range(12):
        for number in range(200):
            slowest.add(make_slow(150.0 + number + slot, request_id=RequestId(f"{slot}-{number}")))
        clock.pass_s(299)

    assert slowest.num_records <= 13 * 20
    assert len(slowest.records()) == MAX_RECORDS
    assert slowest.records()[0].first_token_ms == 150.0 + 199 + 11


def test_after_an_hour_they_are_gone() -> None:
    clock, slowest = _noted(300.0)

    clock.pass_s(KEPT_S + 301)

    assert slowest.records() == []


def test_the_journal_has_them_all_and_outcomes_too() -> None:
    journal, (_, slowest) = FakeJournal(), _noted()
    noting = SlowestRequestsJournal(journal, slowest)

    noting.append(make_slow(300.0))
    noting.append(make_record(1))

    assert len(journal.records) == 2
    assert decode_records(slowest.encode()) == slowest.records()
