"""The port through which a connection reaches the pipeline and the journal."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from caret.contracts.policy import Mode
from caret.contracts.usage import (
    UsageRecord,
)
from caret.foundation.clock import Clock
from caret.foundation.ids import TenantId
from inference.completion.incoming_request import IncomingRequest
from inference.completion.request import Principal
from inference.completion.response_writer import ResponseWriter
from inference.completion.suggestion_edit import SuggestionEdit
from inference.gateway.protocol.outcome_reports import (
    OutcomeReport,
)


@dataclass(frozen=True, slots=True)
class ConnectionBackend:
    """The operations that a connection performs for its client."""

    serve: Callable[[IncomingRequest, ResponseWriter], Awaitable[None]]  # the pipeline
    append_record: Callable[[UsageRecord], None]  # the journal
    # Prefill an opened file's prompt in the background:
    warm_up: Callable[[TenantId, IncomingRequest], None]
    # Store the user's version of a suggestion, if the user consents to content capture now:
    on_edited: Callable[[SuggestionEdit], None]
    # Return the principal as of now. Raises UnauthenticatedRequest, ForbiddenRequest.
    find_principal: Callable[[], Principal]
    find_modes: Callable[[Principal], frozenset[Mode]]  # modes that the principal can request
    # Record the outcome of a request (by its ID) that this connection did not serve:
    record_late_outcome: Callable[[Principal, str, OutcomeReport], None]
    clock: Clock


@dataclass(frozen=True, slots=True)
class StreamCaller:
    """The client that opened the connection. Each completion authenticates its key again."""

    principal: Principal
    key_text: str
    address: str | None  # the client's IP address; None: unknown
    editor: str = ""  # one of inference.consumers.base.EDITORS; "": unknown
