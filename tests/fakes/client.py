"""A client that records its events and can disconnect."""

from collections.abc import Callable

from inference.completion.request_trace import RequestTrace
from inference.completion.response_writer import ClientDisconnected
from inference.errors import CompletionError


class FakeClient:
    """A client that disconnects after `leaves_after` texts: later writes raise ClientDisconnected.

    It never disconnects if `leaves_after` is None. Each write of a text first calls `on_delta`.
    """

    def __init__(
        self, *, leaves_after: int | None = None, on_delta: Callable[[], None] = lambda: None
    ) -> None:
        self.leaves_after = leaves_after
        self.on_delta = on_delta
        self.texts: list[str] = []
        self.ends: list[str] = []  # "done", or an error's code
        self.messages: list[str] = []  # of errors
        self.trace: RequestTrace | None = None

    async def write_delta(self, text: str, _trace: RequestTrace) -> None:
        self._check_connected()
        self.on_delta()
        self.texts.append(text)

    async def write_done(self, trace: RequestTrace) -> None:
        self._check_connected()
        self.trace = trace
        self.ends.append("done")

    async def write_error(self, error: CompletionError, trace: RequestTrace) -> None:
        self._check_connected()
        self.trace = trace
        self.ends.append(error.code)
        self.messages.append(error.message)

    def _check_connected(self) -> None:
        if self.leaves_after is not None and len(self.texts) >= self.leaves_after:
            raise ClientDisconnected
