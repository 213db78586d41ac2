"""Outcomes wait in a queue while there is no connection, and are sent again after a lost one."""

import pytest

from caret_ls.frames import Frame
from caret_ls.outcome_queue import MAX_AT_ONCE, MAX_UNSENT, RESEND_WINDOW_S, OutcomeQueue
from tests.unit.caret_ls.provider_harness import ManualClock


class FakeConnection:
    def __init__(self) -> None:
        self.is_open = True
        self.sent: list[Frame] = []

    def send(self, frame: Frame) -> bool:
        if self.is_open:
            self.sent.append(frame)
        return self.is_open

    @property
    def ids(self) -> list[str]:
        return [frame["request_id"] for frame in self.sent]


@pytest.fixture
def connection() -> FakeConnection:
    return FakeConnection()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def reports(connection: FakeConnection, clock: ManualClock) -> OutcomeQueue:
    return OutcomeQueue(connection.send, clock)


def outcome(request_id: str, **fields: str) -> Frame:
    return {"type": "outcome", "id": "1", "request_id": request_id, **fields}


def test_outcomes_wait_for_a_connection(connection: FakeConnection, reports: OutcomeQueue) -> None:
    connection.is_open = False
    for name in "ab":
        reports.add(outcome(name))
    connection.is_open = True
    reports.on_reconnect()

    assert connection.ids == ["a", "b"]


def test_outcomes_sent_shortly_before_a_connection_ended_are_sent_again(
    connection: FakeConnection, reports: OutcomeQueue, clock: ManualClock
) -> None:
    reports.add(outcome("long ago"))
    clock.now_s += RESEND_WINDOW_S + 1
    reports.add(outcome("lately"))
    connection.sent.clear()
    connection.is_open = False
    reports.add(outcome("offline"))
    connection.is_open = True
    reports.on_reconnect()

    assert connection.ids == ["lately", "offline"]


def test_an_outcome_that_was_resent_is_not_resent_after_a_long_connection(
    connection: FakeConnection, reports: OutcomeQueue, clock: ManualClock
) -> None:
    reports.add(outcome("a"))
    reports.on_reconnect()
    clock.now_s += RESEND_WINDOW_S + 1
    reports.on_reconnect()

    assert connection.ids == ["a", "a"]


def test_a_new_outcome_does_not_overtake_waiting_ones(
    connection: FakeConnection, reports: OutcomeQueue
) -> None:
    connection.is_open = False
    reports.add(outcome("shown"))
    connection.is_open = True
    reports.add(outcome("accepted"))
    reports.flush()

    assert connection.ids == ["shown", "accepted"]


def test_waiting_outcomes_are_sent_in_batches(
    connection: FakeConnection, reports: OutcomeQueue
) -> None:
    connection.is_open = False
    for number in range(MAX_AT_ONCE + 1):
        reports.add(outcome(str(number)))
    connection.is_open = True
    reports.on_reconnect()
    first = len(connection.sent)
    reports.flush()

    assert (first, len(connection.sent)) == (MAX_AT_ONCE, MAX_AT_ONCE + 1)


def test_the_queue_is_bounded_and_drops_the_oldest(
    connection: FakeConnection, reports: OutcomeQueue
) -> None:
    connection.is_open = False
    for number in range(MAX_UNSENT + 10):
        reports.add(outcome(str(number)))
    connection.is_open = True
    for _ in range(MAX_UNSENT):
        reports.flush()

    assert len(connection.sent) == MAX_UNSENT
    assert connection.ids[0] == "10"


def test_outcomes_wait_without_their_text(
    connection: FakeConnection, reports: OutcomeQueue
) -> None:
    reports.add(outcome("a", text="planted"))
    assert connection.sent[0]["text"] == "planted"
    reports.on_reconnect()
    connection.is_open = False
    reports.add(outcome("b", text="planted"))
    connection.is_open = True
    reports.flush()

    assert connection.ids == ["a", "a", "b"]
    assert "planted" not in str(connection.sent[1:])


def test_outcomes_without_a_request_id_do_not_wait(
    connection: FakeConnection, reports: OutcomeQueue
) -> None:
    reports.add({"type": "outcome", "id": "1"})
    connection.is_open = False
    reports.add({"type": "outcome", "id": "2"})
    connection.is_open = True
    reports.on_reconnect()

    assert [frame["id"] for frame in connection.sent] == ["1"]


def test_clearing_the_queue_drops_all_outcomes(
    connection: FakeConnection, reports: OutcomeQueue
) -> None:
    reports.add(outcome("a"))
    connection.is_open = False
    reports.add(outcome("b"))
    reports.clear()
    connection.is_open = True
    reports.on_reconnect()

    assert connection.ids == ["a"]
