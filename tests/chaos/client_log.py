"""What a client notes of each request: one JSON line, written when the request is over for it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

_SHED_CODES: Final = frozenset(
    ("rate_limited", "budget_spent", "too_many_requests", "too_many_connections", "revoked_key")
)
_REFUSED_BY_KEY: Final = frozenset(
    ("unauthorized", "invalid_key", "tenant_suspended", "expired_key")  # the first: a handshake's
)


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    at_s: float  # Unix time when it was asked
    tenant: str  # as the ledger calls it: its id
    # "stop", "shed" ...: the gateway's `finish`; an error frame's code; what the client met itself:
    # "lost" (the stream broke), "late" (no end came in time), "unreachable" (no gateway took it).
    ending: str
    total_ms: float
    first_ms: float | None = None  # None: no text came
    request_id: str = ""  # "": the client saw no end
    prompt_tokens: int = 0
    generated_tokens: int = 0
    attempts: int = 1  # each but the last was given up, and made again elsewhere
    breaks: int = 0  # of these, that were taken by a gateway and whose end was not seen
    is_error: bool = False  # the ending is an error frame's

    @property
    def is_shed(self) -> bool:
        """Refused in a way that no editor shows: it would ask less."""
        return self.ending in ("shed", "budget") or self.ending in _SHED_CODES | _REFUSED_BY_KEY

    @property
    def is_failed(self) -> bool:
        """An editor would show it: a 5xx, or no end at all, after what was tried elsewhere."""
        return self.ending in ("lost", "late", "unreachable") or (
            self.is_error and not self.is_shed
        )

    @property
    def is_served(self) -> bool:
        return not self.is_shed and not self.is_failed


_decoder: Final = msgspec.json.Decoder(Note)


def read_notes(file: Path, *, offset: int = 0) -> tuple[list[Note], int]:
    """Those behind `offset` in bytes, and where the next one will stand."""
    with file.open("rb") as stream:
        stream.seek(offset)
        data = stream.read()
    whole, _, _torn = data.rpartition(b"\n")
    return list(_each(whole)), offset + len(whole) + bool(whole)


def _each(lines: bytes) -> Iterator[Note]:
    return (_decoder.decode(line) for line in lines.split(b"\n") if line)
