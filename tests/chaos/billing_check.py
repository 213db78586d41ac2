"""Comparison of clients' results with bills, without I/O.

Each completion must be billed once, with the tokens that the client received.

If a stream breaks, the gateway may have served and billed the completion although no client noted
its end. So each broken stream allows one row without a note. More such rows are a mistake.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tests.chaos.client_log import Note


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the usage table."""

    request_id: str
    prompt_tokens: int
    generated_tokens: int


@dataclass(frozen=True, slots=True)
class Balance:
    """The result of the comparison, in numbers of completions."""

    noted: int  # completions whose end a client has seen
    billed: int  # rows
    missing: int  # noted by a client, but not billed
    doubled: int  # rows beyond the first one of a request
    different: int  # billed with other token counts than the client received
    unseen: int  # billed, but noted by no client
    broken: int  # streams without an end, and errors: each allows one unseen row

    @property
    def is_balanced(self) -> bool:
        return not (self.missing or self.doubled or self.different) and self.unseen <= self.broken


NOTHING: Final = Balance(0, 0, 0, 0, 0, 0, 0)


def balance(notes: Sequence[Note], rows: Iterable[Row], later_notes: Sequence[Note]) -> Balance:
    """Compare all notes of a run with all rows of its tables, which were empty at the beginning.

    `later_notes` were written after `notes` had been read. Their rows, and the rows of streams that
    they report as broken, may exist already.
    """
    noted_tokens: dict[str, tuple[int, int]] = {}
    for note in notes:
        if note.request_id:
            noted_tokens[note.request_id] = (note.prompt_tokens, note.generated_tokens)
    billed: dict[str, tuple[int, int]] = {}
    num_rows: Counter[str] = Counter()  # by request ID
    for row in rows:
        billed[row.request_id] = (row.prompt_tokens, row.generated_tokens)
        num_rows[row.request_id] += 1
    return Balance(
        noted=len(noted_tokens),
        billed=num_rows.total(),
        missing=len(noted_tokens.keys() - billed.keys()),
        doubled=num_rows.total() - len(num_rows),
        different=sum(
            noted_tokens[request_id] != billed[request_id]
            for request_id in noted_tokens.keys() & billed.keys()
        ),
        unseen=len(billed.keys() - noted_tokens.keys() - {note.request_id for note in later_notes}),
        broken=_count_broken(notes) + _count_broken(later_notes),
    )


def _count_broken(notes: Iterable[Note]) -> int:
    # An error frame contains no request ID, so the row of its request is unseen, too.
    return sum(note.breaks + note.is_error for note in notes)
