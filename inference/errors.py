"""What the data plane says when it cannot complete.

CompletionError                 has a stable wire `code` and an HTTP status
|-- Refused                     the client's side: nothing was asked of an engine
|   |-- BadRequest              400 (413 when too large)
|   |-- Unauthenticated         401 (503 when the gateway cannot tell)
|   |-- Forbidden               403
|   `-- Busy                    429; may say when to try again
`-- EngineError                our side: 502 (503 when no engine is there)
    `-- PromptRefused           the client's side again: 400, and no fault of the engine's

Dropped                         no error to the client: an empty completion that says why

A message never repeats what the client sent: it may be code, or a key.
"""

from typing import Final

from caret.contracts.usage import FinishReason


class CompletionError(Exception):
    http_status = 500

    def __init__(
        self,
        code: str,
        message: str,
        *,
        http_status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        """`retry_after_s`: how long the client had better wait; None: there is no such time."""
        super().__init__(code)
        self.code: Final = code
        self.message: Final = message
        self.retry_after_s: Final = retry_after_s
        if http_status is not None:
            self.http_status = http_status


class ClientError(CompletionError):
    pass


class BadRequest(ClientError):
    http_status = 400


class UnauthenticatedRequest(ClientError):
    http_status = 401


class ForbiddenRequest(ClientError):
    http_status = 403


class TooManyRequests(ClientError):
    http_status = 429


class EngineError(CompletionError):
    http_status = 502


class PromptRefused(EngineError):
    """An engine refuses what the prompt or its parameters say. Operators are not alerted:
    their rules count the codes `engine_...`, `deadline` and `internal`."""

    http_status = 400

    def __init__(self) -> None:
        super().__init__("prompt_refused", "The engine does not accept this prompt.")


class CompletionDropped(Exception):
    """The request is not worth an engine, or there is none for it. An editor is never shown an
    error for it: the client gets a regular, empty end."""

    def __init__(self, finish: FinishReason) -> None:
        """`finish`: SHED, SUPERSEDED or BUDGET."""
        super().__init__(finish.value)
        self.finish: Final = finish
