import pytest

from caret_ls.status_board import Status, StatusBoard


def board() -> tuple[StatusBoard, list[Status]]:
    told: list[Status] = []
    return StatusBoard(told.append), told


def test_each_word_is_told_once() -> None:
    made, told = board()
    made.set(is_connected=True)
    made.set(is_connected=True)
    made.begin()
    made.begin()
    made.end()
    made.end()

    assert told == [Status.READY, Status.WORKING, Status.READY]


@pytest.mark.parametrize(
    ("known", "status"),
    [
        ({}, Status.OFFLINE),
        ({"is_connected": True}, Status.READY),
        ({"is_connected": True, "is_over_budget": True}, Status.OVER_BUDGET),
        ({"is_over_budget": True}, Status.OFFLINE),
        ({"is_signed_out": True}, Status.SIGNED_OUT),
        ({"is_connected": True, "is_signed_out": True, "is_paused": True}, Status.PAUSED),
    ],
)
def test_what_the_user_can_do_something_about_comes_first(
    known: dict[str, bool], status: Status
) -> None:
    made, _ = board()
    made.set(**known)

    assert made.status is status
