"""A gateway that supersedes older requests, and requests that stay in flight."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from caret.contracts.usage import FinishReason
from inference.completion.request import Principal
from inference.completion.request_trace import RequestTrace
from inference.errors import CompletionDropped
from inference.gateway.supersession.feed import ClaimQueue
from inference.gateway.supersession.registry import SupersessionRegistry
from tests.fakes.clock import FakeClock
from tests.fakes.requests import make_arrival, make_request
from tests.fakes.tenants import ROOT_SECRET, make_principal


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request that may still be in flight."""

    task: asyncio.Task[str]

    @property
    def end(self) -> str | None:
        """Return the finish reason, or "dropped" if a newer request was already in flight.

        Returns None while the request is in flight.
        """
        return self.task.result() if self.task.done() else None


class ClaimingGateway:
    def __init__(self, clock: FakeClock, *, root_secret: bytes = ROOT_SECRET) -> None:
        self.clock = clock
        self.queue = ClaimQueue()
        self.registry = SupersessionRegistry(root_secret, self.queue)
        self.requests: list[OpenRequest] = []

    async def begin_request(self, principal: Principal | None = None, **fields: Any) -> OpenRequest:
        """Begin a request a millisecond after the previous one. It runs until it is superseded."""
        self.clock.pass_s(0.001)
        trace = RequestTrace(arrival=make_arrival(clock=self.clock), clock=self.clock)
        claim = self._claim(principal or make_principal(), make_request(**fields), trace)
        open_request = OpenRequest(asyncio.create_task(claim))
        self.requests.append(open_request)
        await asyncio.sleep(0)
        return open_request

    async def is_over(self, open_request: OpenRequest) -> bool:
        """Let the event loop run, and return True if the request has ended by then."""
        for _ in range(3):  # passes of the event loop, enough for a cancelled task to end
            await asyncio.sleep(0)
        return open_request.task.done()

    async def cancel_requests(self) -> None:
        for open_request in self.requests:
            open_request.task.cancel()
        await asyncio.gather(*(request.task for request in self.requests), return_exceptions=True)

    async def _claim(self, principal: Principal, request: Any, trace: RequestTrace) -> str:
        try:
            with suppress(CompletionDropped), self.registry.claim(principal, request, trace):
                await asyncio.Event().wait()
        except asyncio.CancelledError as cancelled:
            # The registry cancels a task with the finish reason as the message.
            return str(cancelled.args[0]) if cancelled.args else FinishReason.CANCELLED
        return "dropped"  # after CompletionDropped: `wait` itself never ends
