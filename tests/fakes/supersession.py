"""A gateway that supersedes older requests, and tasks that hold a request open."""

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
class Held:
    """A request in flight, or the way in which it ended."""

    task: asyncio.Task[str]

    @property
    def end(self) -> str | None:
        return self.task.result() if self.task.done() else None


class ClaimingGateway:
    def __init__(self, clock: FakeClock, *, root_secret: bytes = ROOT_SECRET) -> None:
        self.clock = clock
        self.queue = ClaimQueue()
        self.newest = SupersessionRegistry(root_secret, self.queue)
        self.held: list[Held] = []

    async def begins(self, principal: Principal | None = None, **fields: Any) -> Held:
        """Begin a request a millisecond after the last one; it continues until it is superseded."""
        self.clock.pass_s(0.001)
        trace = RequestTrace(arrival=make_arrival(clock=self.clock), clock=self.clock)
        holding = self._hold(principal or make_principal(), make_request(**fields), trace)
        held = Held(asyncio.create_task(holding))
        self.held.append(held)
        await asyncio.sleep(0)
        return held

    async def is_over(self, held: Held) -> bool:
        for _ in range(3):
            await asyncio.sleep(0)
        return held.task.done()

    async def ends(self) -> None:
        for held in self.held:
            held.task.cancel()
        await asyncio.gather(*(held.task for held in self.held), return_exceptions=True)

    async def _hold(self, principal: Principal, request: Any, trace: RequestTrace) -> str:
        try:
            with suppress(CompletionDropped), self.newest.claim(principal, request, trace):
                await asyncio.Event().wait()
        except asyncio.CancelledError as cancelled:
            return str(cancelled.args[0]) if cancelled.args else FinishReason.CANCELLED
        return "dropped"
