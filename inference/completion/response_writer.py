"""The port through which the pipeline responds to the client. Each protocol implements it."""

from typing import Final, Protocol

from inference.completion.request_trace import RequestTrace
from inference.errors import CompletionError

# A client that does not read for this long counts as disconnected, because it blocks an engine.
MAX_SEND_S: Final = 5.0


class ResponseWriter(Protocol):
    """The client's side of a completion.

    All methods may wait up to MAX_SEND_S for a slow reader, and may raise ClientDisconnected.
    """

    async def write_delta(self, text: str, trace: RequestTrace) -> None:
        """Send text to show, never empty."""

    async def write_done(self, trace: RequestTrace) -> None:
        """Send the regular end. Nothing follows."""

    async def write_error(self, error: CompletionError, trace: RequestTrace) -> None:
        """Send an error, before or after the first text. Nothing follows."""


class ClientDisconnected(Exception):
    """The client has left or does not read."""
