"""The port through which the pipeline sends responses. Each protocol has an implementation."""

from typing import Final, Protocol

from inference.completion.request_trace import RequestTrace
from inference.errors import CompletionError

# A client that does not read for this long counts as disconnected, because it blocks an engine.
MAX_SEND_S: Final = 5.0


class ResponseWriter(Protocol):
    """Sends the response of one completion to the client.

    All methods wait up to MAX_SEND_S for a client that reads slowly. They may raise
    ClientDisconnected.
    """

    async def write_delta(self, text: str, trace: RequestTrace) -> None:
        """Send a part of the text, which is never empty."""

    async def write_done(self, trace: RequestTrace) -> None:
        """Send the regular end of the completion. No call follows."""

    async def write_error(self, error: CompletionError, trace: RequestTrace) -> None:
        """Send an error, before or after the first text. No call follows."""


class ClientDisconnected(Exception):
    """The client has disconnected, or has not read for MAX_SEND_S."""
