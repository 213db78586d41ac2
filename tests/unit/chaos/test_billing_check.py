"""The comparison of the requests that clients noted with the requests that were billed."""

import pytest

from tests.chaos.billing_check import Row, balance
from tests.chaos.client_log import Note

STOPPED = {"at_s": 0.0, "tenant": "acme", "ending": "stop", "total_ms": 40.0}


def note(request_id: str, *, prompt: int = 10, generated: int = 3, **fields: object) -> Note:
    """Return the log entry of a client for one request."""
    counts = {"prompt_tokens": prompt, "generated_tokens": generated}
    return Note(**{**STOPPED, "request_id": request_id, **counts, **fields})  # type: ignore[arg-type]


def row(request_id: str, *, prompt: int = 10, generated: int = 3) -> Row:
    """Return the billed usage of one request."""
    return Row(request_id, prompt, generated)


def test_requests_billed_once_with_the_same_counts_balance() -> None:
    balance_result = balance([note("a"), note("b")], [row("b"), row("a")], later_notes=())

    assert balance_result.is_balanced
    assert (balance_result.noted, balance_result.billed) == (2, 2)


@pytest.mark.parametrize(
    ("rows", "field"),  # of a run in which the clients noted the requests "a" and "b"
    [
        ([row("a")], "missing"),
        ([row("a"), row("b"), row("b")], "doubled"),
        ([row("a"), row("b", generated=4)], "different"),
        ([row("a"), row("b", prompt=9)], "different"),
        ([row("a"), row("b"), row("c")], "unseen"),
    ],
)
def test_each_kind_of_difference_is_counted(rows: list[Row], field: str) -> None:
    balance_result = balance([note("a"), note("b")], rows, later_notes=())

    assert not balance_result.is_balanced
    assert getattr(balance_result, field) == 1


def test_a_retried_request_may_be_billed_twice() -> None:
    # Row "b" may be the bill for the first attempt: its stream broke before the client saw its ID.
    retried_note = note("a", attempts=2, breaks=1)

    balance_result = balance([retried_note], [row("a"), row("b")], later_notes=())

    assert balance_result.is_balanced
    assert (balance_result.unseen, balance_result.broken) == (1, 1)


def test_a_request_that_ended_with_an_error_may_be_billed() -> None:
    failed_note = note("", ending="engine_disconnected", is_error=True)  # it saw no request ID

    assert balance([failed_note], [row("a")], later_notes=()).is_balanced


def test_requests_noted_later_may_or_may_not_be_billed() -> None:
    later_notes = [note("b"), note("c")]

    balance_result = balance([note("a")], [row("a"), row("b")], later_notes)

    assert balance_result.is_balanced
    assert balance_result.missing == 0


def test_a_broken_stream_noted_later_may_be_billed_already() -> None:
    retried_note = note("b", attempts=2, breaks=1)

    assert balance([note("a")], [row("a"), row("c")], later_notes=[retried_note]).is_balanced


@pytest.mark.parametrize(
    ("ending", "is_error", "verdict"),
    [
        ("stop", False, "served"),
        ("filtered", False, "served"),
        ("shed", False, "shed"),
        ("rate_limited", True, "shed"),
        ("revoked_api_key", True, "shed"),
        ("unauthorized", False, "shed"),
        ("engine_disconnected", True, "failed"),
        ("internal_error", True, "failed"),
        ("lost", False, "failed"),
        ("late", False, "failed"),
        ("unreachable", False, "failed"),
    ],
)
def test_a_request_has_failed_only_if_an_editor_would_show_an_error(
    ending: str, is_error: bool, verdict: str
) -> None:
    request_note = note("a", ending=ending, is_error=is_error)

    verdicts = {
        "served": request_note.is_served,
        "shed": request_note.is_shed,
        "failed": request_note.is_failed,
    }
    assert [name for name, is_true in verdicts.items() if is_true] == [verdict]
