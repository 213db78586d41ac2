"""The clients' log: one JSON line for each request, written when the request is over."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

_LIMIT_CODES: Final = frozenset(
    (
        "rate_limited",
        "token_quota_exceeded",
        "too_many_requests",
        "too_many_connections",
    )
)
_KEY_CODES: Final = frozenset(
    # The first code is made by the client, for a handshake that ended with status 401.
    (
        "unauthorized",
        "invalid_api_key",
        "revoked_api_key",
        "expired_api_key",
        "tenant_suspended",
    )
)


class Note(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one request, as its client saw it."""

    at_s: float  # Unix time when it was sent
    tenant: str  # its ID
    # The gateway's `finish_reason` ("stop", "shed" ...), or an error frame's code. Without an end,
    # the client writes "lost" (the stream broke), "late" (no end came in time), "unreachable" (the
    # gateway did not accept the connection) or "unauthorized".
    ending: str
    total_ms: float
    first_ms: float | None = None  # None: no text came
    request_id: str = ""  # "": the client saw no end, or an error frame, which has no ID
    prompt_tokens: int = 0
    generated_tokens: int = 0
    attempts: int = 1  # each but the last was given up and repeated at the next gateway
    breaks: int = 0  # attempts that a gateway accepted and whose end was not seen
    is_error: bool = False  # the ending came in an error frame

    @property
    def is_key_rejected(self) -> bool:
        return self.ending in _KEY_CODES

    @property
    def is_shed(self) -> bool:
        """Return True if the request was rejected because of load, a limit, a budget or its key.

        Such a rejection is no failure.
        """
        return (
            self.ending in ("shed", "budget_exceeded")
            or self.ending in _LIMIT_CODES
            or self.is_key_rejected
        )

    @property
    def is_failed(self) -> bool:
        """Return True for any other error, or if no end came after all attempts."""
        return self.ending in ("lost", "late", "unreachable") or (
            self.is_error and not self.is_shed
        )

    @property
    def is_served(self) -> bool:
        return not self.is_shed and not self.is_failed


_decoder: Final = msgspec.json.Decoder(Note)


def read_notes(file: Path, *, offset: int = 0) -> tuple[list[Note], int]:
    """Return the notes after this offset in bytes, and the offset of the next note."""
    with file.open("rb") as stream:
        stream.seek(offset)
        data = stream.read()
    whole_lines, line_break, _incomplete_line = data.rpartition(b"\n")
    return list(_iterate_notes(whole_lines)), offset + len(whole_lines) + len(line_break)


def _iterate_notes(lines: bytes) -> Iterator[Note]:
    return (_decoder.decode(line) for line in lines.split(b"\n") if line)
