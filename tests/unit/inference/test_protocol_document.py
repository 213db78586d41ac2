"""The table in platform/docs/protocol.md agrees with the state machine of a completion."""

from pathlib import Path

from inference.gateway.protocol.state_machine import TRANSITIONS, CompletionEvent, CompletionState

DOCUMENT = Path(__file__).parents[3] / "platform" / "docs" / "protocol.md"
HEADER = ["state", *CompletionEvent]
CLIENT_EVENTS = (CompletionEvent.COMPLETE, CompletionEvent.CANCEL, CompletionEvent.OUTCOME)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def _read_documented_table() -> list[list[str]]:
    lines = DOCUMENT.read_text(encoding="utf-8").split("\n")
    start = next(index for index, line in enumerate(lines) if _cells(line) == HEADER)
    rows = lines[start + 2 :]  # after the header and a line of dashes
    end = next(index for index, line in enumerate(rows) if not line.startswith("|"))
    return [_cells(row) for row in rows[:end]]


def _expected_cell(state: CompletionState, event: CompletionEvent) -> str:
    next_state = TRANSITIONS[state].get(event)
    if next_state is not None:
        return next_state.value
    # A client may send an event in any state; the gateway refuses it if the table has no state for
    # it. The gateway's own events cannot occur in such states.
    return "refused" if event in CLIENT_EVENTS else "-"


def test_the_documented_table_matches_the_code() -> None:
    table = [
        [state.value, *(_expected_cell(state, event) for event in CompletionEvent)]
        for state in CompletionState
    ]

    assert _read_documented_table() == table
