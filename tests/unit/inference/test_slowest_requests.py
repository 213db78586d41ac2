"""The slowest requests of the last hour, which a gateway remembers."""

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
from tests.fakes.completions import make_completion, make_slow_completion
from tests.fakes.journal import FakeJournal
from tests.fakes.usage import make_record


def _with_requests(*first_token_ms: float) -> tuple[FakeClock, SlowestRequests]:
    clock = FakeClock()
    slowest = SlowestRequests(clock)
    for duration_ms in first_token_ms:
        slowest.add(make_slow_completion(duration_ms))
    return clock, slowest


def test_requests_within_their_target_are_left_out() -> None:
    _, slowest = _with_requests(99.0, 100.0)

    assert slowest.records() == []


def test_requests_are_sorted_by_their_ratio_to_the_target() -> None:
    _, slowest = _with_requests(250.0, 400.0)
    slowest.add(make_slow_completion(3_000.0, mode=Mode.CHAT))

    # The targets are 100 ms and, for chats, 2,000 ms.
    assert [record.first_token_ms for record in slowest.records()] == [400.0, 250.0, 3_000.0]


def test_a_request_without_a_first_token_counts_with_its_total_time() -> None:
    _, slowest = _with_requests()

    slowest.add(make_completion(first_token_ms=None, engine_ms=None, total_ms=900.0))

    assert [record.total_ms for record in slowest.records()] == [900.0]


def test_records_contain_no_user_and_no_key() -> None:
    _, slowest = _with_requests(300.0)

    (record,) = slowest.records()

    assert (record.user_id, record.key_id) == (None, "")


def test_the_number_of_records_is_limited_and_the_slowest_are_kept() -> None:
    clock, slowest = _with_requests()

    for period in range(12):
        for number in range(200):
            slowest.add(
                make_slow_completion(
                    150.0 + number + period, request_id=RequestId(f"{period}-{number}")
                )
            )
        clock.pass_s(299)  # 12 * 299 s are less than an hour, so no slot expires

    # A slot lasts five minutes and has at most 20 records; an hour touches at most 13 slots.
    assert slowest.num_records <= 13 * 20
    assert len(slowest.records()) == MAX_RECORDS
    assert slowest.records()[0].first_token_ms == 150.0 + 199 + 11


def test_records_expire_after_an_hour() -> None:
    clock, slowest = _with_requests(300.0)

    clock.pass_s(KEPT_S + 301)  # records expire together with their slot of 300 s

    assert slowest.records() == []


def test_all_records_are_passed_to_the_journal_and_slow_ones_are_kept() -> None:
    journal, (_, slowest) = FakeJournal(), _with_requests()
    observed_journal = SlowestRequestsJournal(journal, slowest)

    slow_completion, outcome = make_slow_completion(300.0), make_record(1)
    observed_journal.append(slow_completion)
    observed_journal.append(outcome)

    assert journal.records == [slow_completion, outcome]
    assert [record.first_token_ms for record in slowest.records()] == [300.0]


def test_encoded_records_can_be_decoded() -> None:
    _, slowest = _with_requests(300.0)

    (record,) = decode_records(slowest.encode())

    assert record == slowest.records()[0]
