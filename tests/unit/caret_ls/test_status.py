import pytest

from caret_ls.status_board import ServerStatus, StatusBoard


def board() -> tuple[StatusBoard, list[ServerStatus]]:
    told: list[ServerStatus] = []
    return StatusBoard(told.append), told


def test_each_word_is_told_once() -> None:
    made, told = board()
    made.set(is_connected=True)
    made.set(is_connected=True)
    made.on_request_started()
    made.on_request_started()
    made.on_request_ended()
    made.on_request_ended()

    assert told == [ServerStatus.READY, ServerStatus.WORKING, ServerStatus.READY]


@pytest.mark.parametrize(
    ("known", "status"),
    [
        ({}, ServerStatus.OFFLINE),
        ({"is_connected": True}, ServerStatus.READY),
        ({"is_connected": True, "is_over_budget": True}, ServerStatus.OVER_BUDGET),
        ({"is_over_budget": True}, ServerStatus.OFFLINE),
        ({"is_signed_out": True}, ServerStatus.SIGNED_OUT),
        ({"is_connected": True, "is_signed_out": True, "is_paused": True}, ServerStatus.PAUSED),
    ],
)
def test_what_the_user_can_do_something_about_comes_first(
    known: dict[str, bool], status: ServerStatus
) -> None:
    made, _ = board()
    made.set(**known)

    assert made.status is status
