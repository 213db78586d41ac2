import pytest

from caret_ls.status_board import ServerStatus, StatusBoard


def board() -> tuple[StatusBoard, list[ServerStatus]]:
    reported: list[ServerStatus] = []
    return StatusBoard(reported.append), reported


def test_a_status_is_reported_only_when_it_changes() -> None:
    made, reported = board()
    made.set(is_connected=True)
    made.set(is_connected=True)
    made.on_request_started()
    made.on_request_started()
    made.on_request_ended()
    made.on_request_ended()

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
    made, _ = board()
    made.set(**known)

    assert made.status is status
