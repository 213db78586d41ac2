"""The status that the editor shows."""

import pytest

from caret_ls.status_board import ServerStatus, SignedOutReason, StatusBoard


def make_board() -> tuple[StatusBoard, list[ServerStatus]]:
    """Return a board, and the list of the statuses that it reports."""
    statuses: list[ServerStatus] = []
    return StatusBoard(statuses.append), statuses


def test_a_status_is_reported_only_when_it_changes() -> None:
    status_board, statuses = make_board()
    status_board.set(is_connected=True)
    status_board.set(is_connected=True)
    status_board.on_request_started()
    status_board.on_request_started()
    status_board.on_request_ended()
    status_board.on_request_ended()

    assert statuses == [ServerStatus.READY, ServerStatus.WORKING, ServerStatus.READY]


@pytest.mark.parametrize(
    ("conditions", "status"),
    [
        ({}, ServerStatus.OFFLINE),
        ({"is_connected": True}, ServerStatus.READY),
        ({"is_connected": True, "is_over_budget": True}, ServerStatus.OVER_BUDGET),
        ({"is_over_budget": True}, ServerStatus.OFFLINE),
        ({"signed_out_reason": SignedOutReason.NO_KEY}, ServerStatus.SIGNED_OUT),
        (
            {"is_connected": True, "signed_out_reason": SignedOutReason.NO_KEY, "is_paused": True},
            ServerStatus.PAUSED,
        ),
    ],
)
def test_the_condition_with_the_highest_priority_determines_the_status(
    conditions: dict[str, bool | SignedOutReason], status: ServerStatus
) -> None:
    status_board, _ = make_board()
    status_board.set(**conditions)

    assert status_board.status is status


def test_a_new_reason_of_the_same_status_is_reported() -> None:
    status_board, statuses = make_board()
    status_board.set(signed_out_reason=SignedOutReason.NO_KEY)
    status_board.set(signed_out_reason=SignedOutReason.NO_KEY)
    status_board.set(signed_out_reason=SignedOutReason.KEY_REFUSED)

    assert statuses == [ServerStatus.SIGNED_OUT, ServerStatus.SIGNED_OUT]
