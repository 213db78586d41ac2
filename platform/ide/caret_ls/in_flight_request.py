"""A request in flight. Later keystrokes may join it as long as they match its text.

The gateway may withdraw a completion until its first line that is not blank is complete. Once the
line break after this line has arrived, the text has passed the gateway's filter and is final.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from caret_ls.completion_context import CompletionContext

# For this time, a request continues after the editor has cancelled it. Editors cancel and repeat a
# request at each key, and the repeated one can often use the same response.
GRACE_S: Final = 0.03


@dataclass(frozen=True, slots=True)
class CompletionResult:
    """The result of a request that was not cancelled."""

    finish_reason: str  # of the gateway; or an error code if the request failed
    text: str  # the text that arrived, even if the request failed
    took_ms: float
    retry_after_s: float | None = None  # None: the gateway named no time


class InFlightRequest:
    """A request that starts at once and collects the text of its response."""

    def __init__(
        self,
        context: CompletionContext,
        *,
        id: str,
        is_prefetch: bool,
        send: Callable[["InFlightRequest"], Coroutine[None, None, CompletionResult]],
    ) -> None:
        """`send` sends the request, appends the text of the response and returns the result."""
        self.context = context
        self.id = id
        self.is_prefetch = is_prefetch
        self.sent_s: float | None = None  # monotonic time; None: not sent yet
        self.text = ""  # that has arrived
        self.offered = ""  # the part of the text that was offered before the request was over
        # From sending to the first offer of text; None: no text was offered.
        self.offered_after_ms: float | None = None
        self.request_id = ""  # the gateway's ID of the request; "": not received yet
        self._has_news = asyncio.Event()  # text has arrived, or the request is over
        self._num_waiting = 0  # callers that need the request to continue
        self._task = asyncio.create_task(send(self))
        self._task.add_done_callback(lambda _: self._has_news.set())

    @property
    def is_over(self) -> bool:
        return self._task.done()

    def matches(self, context: CompletionContext) -> bool:
        """Return whether the context can use this request.

        It can if the request is not over, and the text typed since matches the completion so far.
        If the user requested a mode, it must be the mode of this request.
        """
        if self.is_over or not context.prefix.startswith(self.context.prefix):
            return False
        if context.is_mode_requested and context.mode != self.context.mode:
            return False
        typed_text = context.prefix[len(self.context.prefix) :]
        return self.text.startswith(typed_text) or typed_text.startswith(self.text)

    def append(self, text: str) -> None:
        self.text += text
        self._has_news.set()

    @property
    def passed_text(self) -> str:
        """The text that has passed the filter, without white space at its end.

        It is empty until the first line that is not blank is complete.
        """
        num_blank = len(self.text) - len(self.text.lstrip())
        return self.text.rstrip() if "\n" in self.text[num_blank:] else ""

    async def wait_passed(self, num_chars: int) -> bool:
        """Wait until more than `num_chars` characters have passed the filter.

        Return False if the request was over before. After the wait, even if it was cancelled, the
        request continues for GRACE_S.
        """
        with self.keep_running():
            while not self.is_over:
                if len(self.passed_text) > num_chars:
                    return True
                self._has_news.clear()
                await self._has_news.wait()
        return False

    async def wait_result(self) -> CompletionResult | None:
        """Wait for the result; None if the request was cancelled.

        If the wait is cancelled, the request continues for GRACE_S.
        """
        with self.keep_running():
            await asyncio.wait({self._task})
        return None if self._task.cancelled() else self._task.result()

    def cancel(self) -> None:
        """Cancel the request, also at the gateway."""
        self._task.cancel()

    @contextmanager
    def keep_running(self) -> Iterator[None]:
        """Let the request continue at least until GRACE_S after the block.

        It is then cancelled, unless it is in another such block.
        """
        self._num_waiting += 1
        try:
            yield
        finally:
            self._num_waiting -= 1
            asyncio.get_running_loop().call_later(GRACE_S, self._cancel_if_unwanted)

    def _cancel_if_unwanted(self) -> None:
        if self._num_waiting == 0:
            self.cancel()
