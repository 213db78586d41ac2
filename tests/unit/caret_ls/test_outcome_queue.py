"""Outcomes wait in a queue while there is no connection, and are sent again after a lost one."""

import pytest

from caret_ls.frames import Frame
from caret_ls.outcome_queue import MAX_AT_ONCE, MAX_UNSENT, RESEND_WINDOW_S, OutcomeQueue
from tests.unit.caret_ls.provider_harness import ManualClock


class FakeConnection:
    """Records the frames that are sent while it is open."""

    def __init__(self) -> None:
        self.is_open = True
        self.sent: list[Frame] = []

    def send(self, frame: Frame) -> bool:
        if self.is_open:
            self.sent.append(frame)
        return self.is_open

    @property
    def request_ids(self) -> list[str]:
        return [frame["request_id"] for frame in self.sent]


@pytest.fixture
def connection() -> FakeConnection:
    return FakeConnection()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def queue(connection: FakeConnection, clock: ManualClock) -> OutcomeQueue:
    return OutcomeQueue(connection.send, clock)


def outcome_frame(request_id: str, **fields: str) -> Frame:
    return {"type": "outcome", "id": "1", "request_id": request_id, **fields}


def test_outcomes_wait_for_a_connection(connection: FakeConnection, queue: OutcomeQueue) -> None:
    connection.is_open = False
    for name in "ab":
        queue.add(outcome_frame(name))
    connection.is_open = True
    queue.on_reconnect()

    assert connection.request_ids == ["a", "b"]


def test_outcomes_sent_shortly_before_a_connection_ended_are_sent_again(
    connection: FakeConnection, queue: OutcomeQueue, clock: ManualClock
) -> None:
    queue.add(outcome_frame("long ago"))
    clock.now_s += RESEND_WINDOW_S + 1
    queue.add(outcome_frame("lately"))
    connection.sent.clear()
    connection.is_open = False
    queue.add(outcome_frame("offline"))
    connection.is_open = True
    queue.on_reconnect()

    assert connection.request_ids == ["lately", "offline"]


def test_an_outcome_that_was_resent_is_not_resent_after_a_long_connection(
    connection: FakeConnection, queue: OutcomeQueue, clock: ManualClock
) -> None:
    queue.add(outcome_frame("a"))
    queue.on_reconnect()
    clock.now_s += RESEND_WINDOW_S + 1
    queue.on_reconnect()

    assert connection.request_ids == ["a", "a"]


def test_a_new_outcome_does_not_overtake_waiting_ones(
    connection: FakeConnection, queue: OutcomeQueue
) -> None:
    connection.is_open = False
    queue.add(outcome_frame("shown"))
    connection.is_open = True
    queue.add(outcome_frame("accepted"))
    queue.flush()

    assert connection.request_ids == ["shown", "accepted"]


def test_waiting_outcomes_are_sent_in_batches(
    connection: FakeConnection, queue: OutcomeQueue
) -> None:
    connection.is_open = False
    for number in range(MAX_AT_ONCE + 1):
        queue.add(outcome_frame(str(number)))
    connection.is_open = True
    queue.on_reconnect()
    num_sent_at_once = len(connection.sent)
    queue.flush()

    assert num_sent_at_once == MAX_AT_ONCE
    assert len(connection.sent) == MAX_AT_ONCE + 1


def test_the_queue_is_bounded_and_drops_the_oldest(
    connection: FakeConnection, queue: OutcomeQueue
) -> None:
    connection.is_open = False
    for number in range(MAX_UNSENT + 10):
        queue.add(outcome_frame(str(number)))
    connection.is_open = True
    for _ in range(MAX_UNSENT):  # more often than necessary: one call sends MAX_AT_ONCE outcomes
        queue.flush()

    assert len(connection.sent) == MAX_UNSENT
    assert connection.request_ids[0] == "10"


def test_an_outcome_that_is_sent_later_or_again_has_no_text(
    connection: FakeConnection, queue: OutcomeQueue
) -> None:
    queue.add(outcome_frame("a", text="planted"))
    queue.on_reconnect()
    connection.is_open = False
    queue.add(outcome_frame("b", text="planted"))
    connection.is_open = True
    queue.flush()

    assert connection.request_ids == ["a", "a", "b"]
    assert connection.sent[0]["text"] == "planted"
    assert "planted" not in str(connection.sent[1:])


def test_outcomes_without_a_request_id_do_not_wait(
    connection: FakeConnection, queue: OutcomeQueue
) -> None:
    queue.add({"type": "outcome", "id": "1"})
    connection.is_open = False
    queue.add({"type": "outcome", "id": "2"})
    connection.is_open = True
    queue.on_reconnect()

    assert [frame["id"] for frame in connection.sent] == ["1"]


def test_clearing_the_queue_drops_all_outcomes(
    connection: FakeConnection, queue: OutcomeQueue
) -> None:
    queue.add(outcome_frame("a"))
    connection.is_open = False
    queue.add(outcome_frame("b"))
    queue.clear()
    connection.is_open = True
    queue.on_reconnect()

    assert connection.request_ids == ["a"]
