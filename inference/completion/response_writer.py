"""The port through which the pipeline speaks to whoever asked; each protocol implements it."""

from typing import Final, Protocol

from inference.completion.request_trace import RequestTrace
from inference.errors import CompletionError

# A client that has not read for so long is treated as gone: its engine slot is worth more.
MAX_SEND_S: Final = 5.0


class ResponseWriter(Protocol):
    """The client's side of a completion.

    All methods may wait up to MAX_SEND_S for a slow reader, and may raise ClientDisconnected.
    """

    async def write_delta(self, text: str) -> None:
        """Text to show, never empty."""

    async def write_done(self, account: RequestTrace) -> None:
        """The regular end; nothing follows."""

    async def write_error(self, error: CompletionError, account: RequestTrace) -> None:
        """The irregular end, before or after the first delta; nothing follows."""


class ClientDisconnected(Exception):
    """The client has left or reads nothing: there is nobody to tell."""
