"""Progress of a job's members: the exports whose rows the job reads.

An evidence pack contains every export, so its job has one member for each. Any other job reads one
export, and has one member.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from tenants.compliance.exports.proof import ProofStart
from tenants.security.audit.queries import ChainHead


class ExportProgress(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The progress of reading one export."""

    definition: str  # the export's name
    version: int  # of the definition, when the job was requested
    is_begun: bool = False
    is_reading_done: bool = False
    # The next batch begins after this position. None: at the beginning, or all is read.
    place: str | None = None
    num_parts: int = 0
    rows: int = 0
    # The state before the first row was read, as in ProofStart.
    complete_until: datetime | None = None
    sequence: int = 0  # of the audit chain's head
    hash: str = ""  # of the audit chain's head, in hexadecimal digits

    @property
    def proof_start(self) -> ProofStart:
        return ProofStart(self.complete_until, ChainHead(self.sequence, bytes.fromhex(self.hash)))


def record_start(member: ExportProgress, beginning: ProofStart) -> ExportProgress:
    """Return the progress with the state before the first row is read."""
    return msgspec.structs.replace(
        member,
        is_begun=True,
        complete_until=beginning.complete_until,
        sequence=beginning.head.sequence,
        hash=beginning.head.hash.hex(),
    )


def reset_progress(members: Iterable[ExportProgress]) -> list[ExportProgress]:
    """Return the progress as it was when the job was requested."""
    return [ExportProgress(member.definition, member.version) for member in members]


def record_part(member: ExportProgress, *, num_rows: int, place: str | None) -> ExportProgress:
    """Return the progress after a batch; `place` None: it was the last one."""
    return msgspec.structs.replace(
        member,
        rows=member.rows + num_rows,
        num_parts=member.num_parts + (1 if num_rows else 0),
        place=place,
        is_reading_done=place is None,
    )


def parse_members(document: object) -> list[ExportProgress]:
    return msgspec.convert(document, list[ExportProgress])


def serialize_members(members: Iterable[ExportProgress]) -> Any:
    return msgspec.to_builtins(list(members))


def is_reading_done(document: object) -> bool:
    """Return whether all rows of the job are read; False for an invalid document.

    `document` is ExportJob.members.
    """
    try:
        return find_next_unread(parse_members(document)) is None
    except msgspec.ValidationError:
        return False


def find_next_unread(members: Sequence[ExportProgress]) -> int | None:
    """Return the index of the first export that is not completely read; None: all are."""
    return next((index for index, member in enumerate(members) if not member.is_reading_done), None)
