"""What the data plane says when it cannot complete.

CompletionError                 has a stable wire `code` and an HTTP status
|-- Refused                     the client's side: nothing was asked of an engine
|   |-- BadRequest              400 (413 when too large)
|   |-- Unauthenticated         401 (503 when the gateway cannot tell)
|   |-- Forbidden               403
|   `-- Busy                    429
`-- EngineFailed                our side: 502 (503 when no engine is there)

A message never repeats what the client sent: it may be code, or a key.
"""

from typing import Final


class CompletionError(Exception):
    http_status = 500

    def __init__(self, code: str, message: str, *, http_status: int | None = None) -> None:
        super().__init__(code)
        self.code: Final = code
        self.message: Final = message
        if http_status is not None:
            self.http_status = http_status


class Refused(CompletionError):
    pass


class BadRequest(Refused):
    http_status = 400


class Unauthenticated(Refused):
    http_status = 401


class Forbidden(Refused):
    http_status = 403


class Busy(Refused):
    http_status = 429


class EngineFailed(CompletionError):
    http_status = 502
