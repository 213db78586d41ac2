"""The port through which the pipeline speaks to whoever asked; each protocol implements it."""

from typing import Final, Protocol

from inference.completion.request_trace import Account
from inference.errors import CompletionError

# A client that has not read for so long is treated as gone: its engine slot is worth more.
MAX_SEND_S: Final = 5.0


class Client(Protocol):
    """All methods may wait for a slow reader, MAX_SEND_S at most, and may raise ClientGone."""

    async def delta(self, text: str) -> None:
        """Text to show, never empty."""

    async def done(self, account: Account) -> None:
        """The regular end; nothing follows."""

    async def error(self, error: CompletionError, account: Account) -> None:
        """The irregular end, before or after the first delta; nothing follows."""


class ClientGone(Exception):
    """The client has left or reads nothing: there is nobody to tell."""
