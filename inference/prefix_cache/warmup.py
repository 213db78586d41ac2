"""Warm-ups prefill the stable part of a file's prompts before the first request.

They are requested by an editor that opens a file, and by the first completion in a repository: the
next keystroke may supersede the completion's own prefill, but not a warm-up.

Rules:
1. Nobody waits for a warm-up, and it delays nobody. It starts at a replica with no requests of this
   gateway in flight, with the engine's lowest priority, and is cancelled when a request arrives
   there. Prefilled blocks stay cached, so that a later attempt continues.
2. It is not a request of the tenant: nobody is notified, no usage record is written, nothing is
   billed. It needs what a request needs (key, policy, quota, concurrency slot) and counts towards
   these limits.
3. The queue is bounded. If a tenant has too many warm-ups, its oldest one is dropped. If the whole
   queue is full, the new one is.
4. While another tenant waits, a tenant has at most one running warm-up. Its second one is
   cancelled, and continues after the other tenant's has started.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

import structlog

from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason
from caret.foundation.clock import Clock
from caret.foundation.ids import TenantId, new_request_id
from caret.foundation.log_config import describe
from inference.completion.incoming_request import IncomingRequest
from inference.completion.request import AdmittedRequest
from inference.context.prompt.prompt import Prompt
from inference.errors import CompletionDropped, CompletionError

MAX_WAITING: Final = 16  # each holds the texts that an editor sent (see MAX_FRAME_CHARS)
MAX_OF_TENANT: Final = 4
MAX_AT_ONCE: Final = 2  # on this gateway
MAX_TRIES: Final = 6
PAUSE_S: Final = 0.5  # before the next attempt: slightly longer than a pause between two keystrokes
MAX_AGE_S: Final = 10.0
# After this time without requests for a repository, the engines may have evicted its blocks.
REMEMBERED_S: Final = 600.0
_MAX_REMEMBERED: Final = 10_000
log = structlog.get_logger(__name__)

# A warm-up of fewer tokens is not worthwhile: it costs more than the prefill that it saves.
MIN_TOKENS: Final = 64

Warm = Callable[[IncomingRequest], Awaitable[None]]


@dataclass(slots=True, eq=False)
class _WarmupRequest:
    tenant_id: TenantId
    arrival: IncomingRequest
    num_tries: int = 0
    attempt: asyncio.Future[None] | None = None  # None: waiting or pausing


def stable_prefix(prompt: Prompt) -> Prompt:
    """Return the stable part of the prompt.

    CompletionDropped (filtered) means that it is too short. Raises CompletionDropped.
    """
    if prompt.num_stable_tokens < MIN_TOKENS:
        raise CompletionDropped(FinishReason.FILTERED)
    return replace(prompt, token_ids=prompt.token_ids[: prompt.num_stable_tokens], segments=())


class WarmupQueue:
    """The queue of warm-ups and their workers. Only one event loop may use it."""

    def __init__(self, clock: Clock) -> None:
        self.num_ended: Counter[str] = Counter()  # by result: warmed, shed, an error's code ...
        self._clock = clock
        self._requests: list[_WarmupRequest] = []  # oldest first
        self._has_requests = asyncio.Event()
        self._running: list[_WarmupRequest] = []  # longest running first
        self._seen_s: OrderedDict[tuple[str, str], float] = OrderedDict()

    @property
    def num_waiting(self) -> int:
        return len(self._requests)

    def on_file_opened(self, tenant_id: TenantId, arrival: IncomingRequest) -> None:
        """Queue a warm-up, unless the queue is full.

        If the tenant has too many, it replaces the oldest of them: the user will probably edit the
        latest file first.
        """
        requests_of_tenant = [
            request for request in self._requests if request.tenant_id == tenant_id
        ]
        if len(requests_of_tenant) >= MAX_OF_TENANT:
            self._requests.remove(requests_of_tenant[0])
            self.num_ended["evicted"] += 1
        if len(self._requests) >= MAX_WAITING:
            self.num_ended["full"] += 1
            return
        self._requests.append(_WarmupRequest(tenant_id, arrival))
        self._has_requests.set()
        self._preempt()

    def on_request_admitted(self, admitted: AdmittedRequest, arrival: IncomingRequest) -> None:
        """Queue a warm-up after the first completion of its namespace and repository."""
        request = admitted.request
        repository = request.repository
        # Nothing to warm up for edits: their prompts do not contain the repository's other files.
        # Raw prompts and chats have no known stable part.
        if not repository or request.is_raw or request.mode in (Mode.EDIT, Mode.CHAT):
            return
        if self._is_new((admitted.principal.namespace, repository)):
            draft = replace(arrival.draft, trigger="prefetch", is_warm_up=True)
            self.on_file_opened(
                admitted.principal.snapshot.tenant_id,
                replace(arrival, draft=draft, request_id=new_request_id()),
            )

    async def run(self, warm: Warm) -> None:
        """Run warm-ups until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(MAX_AT_ONCE):
                group.create_task(self._run_worker(warm))

    async def _run_worker(self, warm: Warm) -> None:
        while True:
            await self._has_requests.wait()
            if not self._requests:  # another worker was faster
                self._has_requests.clear()
                continue
            request = self._take_next()
            self._running.append(request)
            try:
                result = await self._run_request(request, warm)
            finally:
                self._running.remove(request)
            if result is not None:
                self.num_ended[result] += 1
            else:  # It has waited before, so it goes first, even if the queue is full.
                self._requests.insert(0, request)
                self._has_requests.set()

    def _take_next(self) -> _WarmupRequest:
        """Remove and return the oldest request of a tenant without a running warm-up.

        If there is none, remove and return the oldest request.
        """
        request = next(filter(self._is_tenant_idle, self._requests), self._requests[0])
        self._requests.remove(request)
        return request

    async def _run_request(self, request: _WarmupRequest, warm: Warm) -> str | None:
        """Run until there is a result; None: another tenant goes first, try again later."""
        while not self._is_blocking_tenant(request):
            if self._clock.monotonic_s() - request.arrival.received_s > MAX_AGE_S:
                return "stale"
            request.num_tries += 1
            result = await _try_warm_up(request, warm)
            if result not in ("shed", "preempted") or request.num_tries >= MAX_TRIES:
                return result
            if not self._is_blocking_tenant(request):
                await asyncio.sleep(PAUSE_S)
        return None

    def _is_blocking_tenant(self, request: _WarmupRequest) -> bool:
        """Return whether its tenant has two running warm-ups while another tenant waits."""
        num_of_tenant = sum(
            running_request.tenant_id == request.tenant_id for running_request in self._running
        )
        return num_of_tenant > 1 and any(map(self._is_tenant_idle, self._requests))

    def _is_tenant_idle(self, request: _WarmupRequest) -> bool:
        """Return whether no warm-up of the request's tenant is running."""
        return all(
            running_request.tenant_id != request.tenant_id for running_request in self._running
        )

    def _preempt(self) -> None:
        """Cancel the latest warm-up that blocks another tenant.

        A warm-up that pauses needs no cancelling: it checks by itself whether it blocks a tenant.
        """
        latest = next(filter(self._is_blocking_tenant, reversed(self._running)), None)
        if latest is not None and latest.attempt is not None:
            latest.attempt.cancel()
            latest.attempt = None  # cancel only once: it may take time to end

    def _is_new(self, scope: tuple[str, str]) -> bool:
        """Return whether the scope had no request for REMEMBERED_S, and note this request.

        A scope is a namespace and a repository.
        """
        now_s = self._clock.monotonic_s()
        last_s = self._seen_s.get(scope, float("-inf"))
        self._seen_s[scope] = now_s
        self._seen_s.move_to_end(scope)
        if len(self._seen_s) > _MAX_REMEMBERED:
            self._seen_s.popitem(last=False)
        return now_s - last_s > REMEMBERED_S


async def _try_warm_up(request: _WarmupRequest, warm: Warm) -> str:
    """Run one attempt, and return its result.

    It is a task of its own, so that a request that needs the replica can cancel it alone.
    """
    task = request.attempt = asyncio.ensure_future(warm(request.arrival))
    try:
        await asyncio.wait({task})
    finally:
        request.attempt = None
        task.cancel()  # needed if the waiting task was cancelled; otherwise the task has ended
        (error,) = await asyncio.gather(task, return_exceptions=True)
    if error is None:
        return "warmed"
    if isinstance(error, asyncio.CancelledError):
        return "preempted"
    if isinstance(error, CompletionDropped):
        return error.finish_reason.value
    if isinstance(error, CompletionError):
        return error.code
    log.error("warm_up.internal_error", request_id=request.arrival.request_id, **describe(error))
    return "defect"
