"""The errors of the data plane.

    CompletionError                 has a stable wire `code` and an HTTP status
    |-- ClientError                 the client's fault, or a limit is reached
    |   |-- BadRequest              400 (404, 405, 408, 413 or 501 for some codes)
    |   |   `-- UnknownModel          404
    |   |-- UnauthenticatedRequest  401 (503 if the gateway cannot verify keys)
    |   |-- ForbiddenRequest        403
    |   `-- TooManyRequests         429 (503 if the gateway is full, 402 if a budget is used up)
    `-- EngineError                 our fault: 502 (503 if no engine can serve the request now,
        |                           504 after its deadline)
        `-- PromptRefused           the client's fault, which the engine reports: 400

    CompletionDropped               no error: the client gets an empty completion and a reason

A message never repeats text that the client sent, because the text may be code or a key. A message
repeats a model's name only if the name can be neither (routing/pool_selection.py).
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
        param: str | None = None,
    ) -> None:
        """Create an error with its wire `code` and a message for the client.

        `http_status`: None means the status of the class.

        `retry_after_s`: seconds that the client should wait. None means that the time is unknown,
        or that waiting would not help.

        `param`: the invalid field of the request; None: the message alone describes the error.
        """
        super().__init__(code)
        self.code: Final = code
        self.message: Final = message
        self.retry_after_s: Final = retry_after_s
        self.param: Final = param
        if http_status is not None:
            self.http_status = http_status


class ClientError(CompletionError):
    pass


class BadRequest(ClientError):
    http_status = 400


class UnknownModel(BadRequest):
    http_status = 404

    def __init__(self, name: str, message: str) -> None:
        """`name`: the model's name; "" if the client may have sent code or a key as the name."""
        super().__init__("model_not_found", message, param="model")
        self.name: Final = name


class UnauthenticatedRequest(ClientError):
    http_status = 401


class ForbiddenRequest(ClientError):
    http_status = 403


class TooManyRequests(ClientError):
    http_status = 429


class EngineError(CompletionError):
    http_status = 502


class PromptRefused(EngineError):
    """The engine rejects the prompt or its parameters.

    Operators are not alerted: alerts count the codes `engine_...`, `deadline_exceeded` and
    `internal_error`.
    """

    http_status = 400

    def __init__(self) -> None:
        super().__init__("prompt_refused", "The engine does not accept this prompt.")


class CompletionDropped(Exception):
    """The request ends without a completion, but not with an error.

    Editors never show an error for it: the client gets a regular, empty end.
    """

    def __init__(self, finish_reason: FinishReason) -> None:
        """`finish_reason`: SHED, SUPERSEDED, FILTERED or BUDGET_EXCEEDED."""
        super().__init__(finish_reason.value)
        self.finish_reason: Final = finish_reason
