"""Comparison of clients' results with bills, without I/O.

Each completion must be billed once, with the tokens that the client received.

If a stream breaks, the gateway may have served and billed the completion although no client noted
its end. So as many rows without a note as broken streams are correct, but more are a mistake.
"""

from collections import Counter
from collections.abc import Iterable
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
    doubled: int  # surplus rows of requests that have several
    different: int  # billed with other token counts than the client received
    unseen: int  # billed, but noted by no client
    broken: int  # streams without an end, and errors: as many rows may be unseen

    @property
    def is_balanced(self) -> bool:
        return not (self.missing or self.doubled or self.different) and self.unseen <= self.broken


NOTHING: Final = Balance(0, 0, 0, 0, 0, 0, 0)


def balance(notes: Iterable[Note], rows: Iterable[Row], later_notes: Iterable[Note]) -> Balance:
    """Compare everything since the tables were empty.

    `later_notes` were written after `notes` had been read; their rows may exist already.
    """
    noted_tokens: dict[str, tuple[int, int]] = {}
    broken = 0
    for note in notes:
        broken += note.breaks + note.is_error  # error frames do not contain a request ID
        if note.request_id:
            noted_tokens[note.request_id] = (note.prompt_tokens, note.generated_tokens)
    billed: dict[str, tuple[int, int]] = {}
    counts: Counter[str] = Counter()
    for row in rows:
        billed[row.request_id] = (row.prompt_tokens, row.generated_tokens)
        counts[row.request_id] += 1
    return Balance(
        noted=len(noted_tokens),
        billed=counts.total(),
        missing=len(noted_tokens.keys() - billed.keys()),
        doubled=counts.total() - len(counts),
        different=sum(
            noted_tokens[request_id] != billed[request_id]
            for request_id in noted_tokens.keys() & billed.keys()
        ),
        unseen=len(billed.keys() - noted_tokens.keys() - {note.request_id for note in later_notes}),
        broken=broken,
    )
