"""Pending outcomes, over connections that come and go."""

import pytest

from caret_ls.frames import Frame
from caret_ls.outcome_queue import MAX_AT_ONCE, MAX_UNTOLD, RESEND_WINDOW_S, OutcomeQueue
from tests.unit.caret_ls.provider_harness import TurnedClock


class Wire:
    def __init__(self) -> None:
        self.is_open = True
        self.told: list[Frame] = []

    def tell(self, frame: Frame) -> bool:
        if self.is_open:
            self.told.append(frame)
        return self.is_open

    @property
    def ids(self) -> list[str]:
        return [frame["request_id"] for frame in self.told]


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def clock() -> TurnedClock:
    return TurnedClock()


@pytest.fixture
def reports(wire: Wire, clock: TurnedClock) -> OutcomeQueue:
    return OutcomeQueue(wire.tell, clock)


def outcome(request_id: str, **more: str) -> Frame:
    return {"type": "outcome", "id": "1", "request_id": request_id, **more}


def test_what_is_told_without_a_connection_waits_for_one(wire: Wire, reports: OutcomeQueue) -> None:
    wire.is_open = False
    for name in "ab":
        reports.add(outcome(name))
    wire.is_open = True
    reports.on_reconnect()

    assert wire.ids == ["a", "b"]


def test_what_went_into_a_connection_shortly_before_its_end_is_told_again(
    wire: Wire, reports: OutcomeQueue, clock: TurnedClock
) -> None:
    reports.add(outcome("long ago"))
    clock.now_s += RESEND_WINDOW_S + 1
    reports.add(outcome("lately"))
    wire.told.clear()
    wire.is_open = False
    reports.add(outcome("offline"))
    wire.is_open = True
    reports.on_reconnect()

    assert wire.ids == ["lately", "offline"]


def test_it_stays_in_doubt_until_a_connection_has_lived(
    wire: Wire, reports: OutcomeQueue, clock: TurnedClock
) -> None:
    reports.add(outcome("a"))
    reports.on_reconnect()
    clock.now_s += RESEND_WINDOW_S + 1
    reports.on_reconnect()

    assert wire.ids == ["a", "a"]


def test_what_waits_is_not_overtaken(wire: Wire, reports: OutcomeQueue) -> None:
    wire.is_open = False
    reports.add(outcome("shown"))
    wire.is_open = True
    reports.add(outcome("accepted"))
    reports.flush()

    assert wire.ids == ["shown", "accepted"]


def test_requests_find_room_beside_it(wire: Wire, reports: OutcomeQueue) -> None:
    wire.is_open = False
    for number in range(MAX_AT_ONCE + 1):
        reports.add(outcome(str(number)))
    wire.is_open = True
    reports.on_reconnect()
    first = len(wire.told)
    reports.flush()

    assert (first, len(wire.told)) == (MAX_AT_ONCE, MAX_AT_ONCE + 1)


def test_what_waits_is_bounded_and_the_oldest_goes(wire: Wire, reports: OutcomeQueue) -> None:
    wire.is_open = False
    for number in range(MAX_UNTOLD + 10):
        reports.add(outcome(str(number)))
    wire.is_open = True
    for _ in range(MAX_UNTOLD):
        reports.flush()

    assert len(wire.told) == MAX_UNTOLD
    assert wire.ids[0] == "10"


def test_code_does_not_wait(wire: Wire, reports: OutcomeQueue) -> None:
    reports.add(outcome("a", text="planted"))
    assert wire.told[0]["text"] == "planted"
    reports.on_reconnect()
    wire.is_open = False
    reports.add(outcome("b", text="planted"))
    wire.is_open = True
    reports.flush()

    assert wire.ids == ["a", "a", "b"]
    assert "planted" not in str(wire.told[1:])


def test_what_no_other_connection_would_know_is_not_kept(wire: Wire, reports: OutcomeQueue) -> None:
    reports.add({"type": "outcome", "id": "1"})
    wire.is_open = False
    reports.add({"type": "outcome", "id": "2"})
    wire.is_open = True
    reports.on_reconnect()

    assert [frame["id"] for frame in wire.told] == ["1"]


def test_another_gateway_is_told_nothing_of_it(wire: Wire, reports: OutcomeQueue) -> None:
    reports.add(outcome("a"))
    wire.is_open = False
    reports.add(outcome("b"))
    reports.clear()
    wire.is_open = True
    reports.on_reconnect()

    assert wire.ids == ["a"]
