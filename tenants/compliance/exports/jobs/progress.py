"""How far each export of a build has come: one, or of an evidence pack all of them."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from tenants.compliance.exports.proof import Beginning
from tenants.security.audit.queries import Head


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    definition: str
    version: int
    is_begun: bool = False
    is_read: bool = False
    place: str | None = None  # after which the next batch begins; None: at the beginning
    num_parts: int = 0
    rows: int = 0
    # What is true before the first row is read.
    complete_until: datetime | None = None
    sequence: int = 0  # of the audit chain's head
    hash: str = ""

    @property
    def beginning(self) -> Beginning:
        return Beginning(self.complete_until, Head(self.sequence, bytes.fromhex(self.hash)))


def begun(member: Member, beginning: Beginning) -> Member:
    return msgspec.structs.replace(
        member,
        is_begun=True,
        complete_until=beginning.complete_until,
        sequence=beginning.head.sequence,
        hash=beginning.head.hash.hex(),
    )


def unread(members: Iterable[Member]) -> list[Member]:
    """As they were when it was asked for."""
    return [Member(member.definition, member.version) for member in members]


def with_part(member: Member, *, num_rows: int, place: str | None) -> Member:
    """After a batch; place None: it was the last."""
    return msgspec.structs.replace(
        member,
        rows=member.rows + num_rows,
        num_parts=member.num_parts + (1 if num_rows else 0),
        place=place,
        is_read=place is None,
    )


def read_members(document: object) -> list[Member]:
    return msgspec.convert(document, list[Member])


def write_members(members: Iterable[Member]) -> Any:
    return msgspec.to_builtins(list(members))


def are_read(document: object) -> bool:
    """Whether nothing is left but to write the file; not so of a document that is none."""
    try:
        return next_unread(read_members(document)) is None
    except msgspec.ValidationError:
        return False


def next_unread(members: Sequence[Member]) -> int | None:
    """The place of the first that is not read; None: all are."""
    return next((place for place, each in enumerate(members) if not each.is_read), None)
