"""A request under way, which later keystrokes may join as long as they agree with it."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from caret_ls.completion_context import CompletionContext

# Editors take a request back at each key and ask anew: what was asked may be what is wanted still.
GRACE_S: Final = 0.03


@dataclass(frozen=True, slots=True)
class CompletionResult:
    """How it ended: `finish` as the protocol names it, or the code of an error."""

    finish: str
    text: str
    took_ms: float
    retry_after_s: float | None = None


class InFlightRequest:
    """Begins at once. `ask` calls back with each part of the text."""

    def __init__(
        self,
        place: CompletionContext,
        *,
        id: str,
        is_prefetch: bool,
        ask: Callable[["InFlightRequest"], Coroutine[None, None, CompletionResult]],
    ) -> None:
        self.place = place
        self.id = id
        self.is_prefetch = is_prefetch
        self.text = ""
        self.request_id = ""  # as the gateway names it at its end
        self._num_waiting = 0
        self._task = asyncio.create_task(ask(self))

    @property
    def is_over(self) -> bool:
        return self._task.done()

    def matches(self, place: CompletionContext) -> bool:
        """Whether what has been typed since is what it says, as far as it has said something."""
        if self.is_over or not place.prefix.startswith(self.place.prefix):
            return False
        typed = place.prefix[len(self.place.prefix) :]
        return self.text.startswith(typed) or typed.startswith(self.text)

    def append(self, text: str) -> None:
        self.text += text

    async def wait_result(self) -> CompletionResult | None:
        """None: it was taken back. Waiting for it may be cancelled; it flies on for a moment."""
        with self._count_waiting():
            await asyncio.wait({self._task})
        return None if self._task.cancelled() else self._task.result()

    def cancel(self) -> None:
        """Takes it back, on the wire."""
        self._task.cancel()

    @contextmanager
    def _count_waiting(self) -> Iterator[None]:
        self._num_waiting += 1
        try:
            yield
        finally:
            self._num_waiting -= 1
            asyncio.get_running_loop().call_later(GRACE_S, self._cancel_if_unwanted)

    def _cancel_if_unwanted(self) -> None:
        if self._num_waiting == 0:
            self.cancel()
