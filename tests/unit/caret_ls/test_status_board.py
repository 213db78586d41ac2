import pytest

from caret_ls.status_board import ServerStatus, StatusBoard


def board() -> tuple[StatusBoard, list[ServerStatus]]:
    reported: list[ServerStatus] = []
    return StatusBoard(reported.append), reported


def test_a_status_is_reported_only_when_it_changes() -> None:
    status_board, reported = board()
    status_board.set(is_connected=True)
    status_board.set(is_connected=True)
    status_board.on_request_started()
    status_board.on_request_started()
    status_board.on_request_ended()
    status_board.on_request_ended()

    assert reported == [ServerStatus.READY, ServerStatus.WORKING, ServerStatus.READY]


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
def test_a_status_that_the_user_can_act_on_comes_first(
    known: dict[str, bool], status: ServerStatus
) -> None:
    status_board, _ = board()
    status_board.set(**known)

    assert status_board.status is status
