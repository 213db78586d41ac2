"""Warm-ups prefill the stable part of a file's prompts before the first request.

Editors request a warm-up when they open a file. The first completion in a repository also causes a
warm-up: the next keystroke may supersede the completion's own prefill, but not a warm-up.

Rules:
1. A warm-up does not delay requests. It starts only at a replica at which this gateway has no
   requests in flight. It has the lowest priority in the engine's queue, and is cancelled when a
   request arrives at the replica. Prefilled blocks stay cached, so a later attempt continues after
   them.
2. A warm-up is not a request of the tenant: clients get no response, no usage record is written,
   and nothing is billed. A warm-up passes the same checks as a request (key, policy, quotas,
   concurrency limits), and counts towards these limits.
3. The queue is bounded. If a tenant has too many warm-ups, its oldest one is dropped. If the whole
   queue is full, the new warm-up is dropped.
4. While another tenant waits, a tenant has at most one running warm-up. Its second warm-up is
   cancelled, and continues after the other tenant's warm-up has started.
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

# Each waiting warm-up holds the texts that an editor sent (see MAX_FRAME_CHARS). A running warm-up
# that must wait again is queued even if the queue is full.
MAX_WAITING: Final = 16
MAX_OF_TENANT: Final = 4  # waiting
MAX_AT_ONCE: Final = 2  # running on this gateway
MAX_TRIES: Final = 6  # attempts of one warm-up
PAUSE_S: Final = 0.5  # before the next attempt: slightly longer than a pause between two keystrokes
MAX_AGE_S: Final = 10.0  # time since its arrival; older warm-ups are dropped
# After this time without requests for a repository, the engines may have evicted its blocks.
REMEMBERED_S: Final = 600.0
_MAX_REMEMBERED: Final = 10_000  # namespaces and repositories
log = structlog.get_logger(__name__)

# A warm-up of fewer tokens costs more than the prefill that it saves.
MIN_TOKENS: Final = 64

# Runs one attempt. Raises CompletionError, CompletionDropped.
WarmUp = Callable[[IncomingRequest], Awaitable[None]]


@dataclass(slots=True, eq=False)
class _PendingWarmup:
    """A warm-up that waits or runs."""

    tenant_id: TenantId
    arrival: IncomingRequest
    num_tries: int = 0
    attempt: asyncio.Future[None] | None = None  # None: waiting or pausing


def cut_to_stable_part(prompt: Prompt) -> Prompt:
    """Return a prompt of only the stable part.

    Raises CompletionDropped (`filtered`) if this part is too short (MIN_TOKENS).
    """
    if prompt.num_stable_tokens < MIN_TOKENS:
        raise CompletionDropped(FinishReason.FILTERED)
    return replace(prompt, token_ids=prompt.token_ids[: prompt.num_stable_tokens], segments=())


class WarmupQueue:
    """The queue of warm-ups, and its workers. Used on one event loop only."""

    def __init__(self, clock: Clock) -> None:
        self.num_ended: Counter[str] = Counter()  # by result, such as `warmed` or an error's code
        self._clock = clock
        self._waiting: list[_PendingWarmup] = []  # waiting, oldest first
        self._has_waiting = asyncio.Event()
        self._running: list[_PendingWarmup] = []  # longest running first
        # The time of the last request for each namespace and repository, oldest first.
        self._seen_s: OrderedDict[tuple[str, str], float] = OrderedDict()

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    def add_warmup(self, tenant_id: TenantId, arrival: IncomingRequest) -> None:
        """Queue a warm-up, unless the queue is full.

        If the tenant has too many, the new warm-up replaces its oldest one: the user will probably
        edit the latest file first.
        """
        warmups_of_tenant = [warmup for warmup in self._waiting if warmup.tenant_id == tenant_id]
        if len(warmups_of_tenant) >= MAX_OF_TENANT:
            self._waiting.remove(warmups_of_tenant[0])
            self.num_ended["evicted"] += 1
        if len(self._waiting) >= MAX_WAITING:
            self.num_ended["full"] += 1
            return
        self._waiting.append(_PendingWarmup(tenant_id, arrival))
        self._has_waiting.set()
        self._preempt()

    def on_request_admitted(self, admitted: AdmittedRequest, arrival: IncomingRequest) -> None:
        """Queue a warm-up if the request is the first of its namespace and repository.

        A request after a pause of more than REMEMBERED_S counts as the first one.
        """
        request = admitted.request
        repository = request.repository
        # Nothing to warm up for edits: their prompts do not contain the repository's other files.
        # Raw prompts and chats have no known stable part.
        if not repository or request.is_raw or request.mode in (Mode.EDIT, Mode.CHAT):
            return
        scope = (admitted.principal.namespace, repository)
        is_first = self._is_first_request(scope)
        self._remember_request(scope)
        if is_first:
            draft = replace(arrival.draft, trigger="prefetch", is_warm_up=True)
            self.add_warmup(
                admitted.principal.snapshot.tenant_id,
                replace(arrival, draft=draft, request_id=new_request_id()),
            )

    async def run(self, warm_up: WarmUp) -> None:
        """Run warm-ups until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(MAX_AT_ONCE):
                group.create_task(self._run_worker(warm_up))

    async def _run_worker(self, warm_up: WarmUp) -> None:
        while True:
            await self._has_waiting.wait()
            if not self._waiting:  # another worker was faster
                self._has_waiting.clear()
                continue
            warmup = self._take_next()
            self._running.append(warmup)
            try:
                result = await self._run_attempts(warmup, warm_up)
            finally:
                self._running.remove(warmup)
            if result is not None:
                self.num_ended[result] += 1
            else:  # This warm-up has waited before, so it is first, even if the queue is full.
                self._waiting.insert(0, warmup)
                self._has_waiting.set()

    def _take_next(self) -> _PendingWarmup:
        """Remove and return the oldest warm-up of a tenant without a running one.

        If there is none, remove and return the oldest warm-up.
        """
        warmup = next(filter(self._is_tenant_idle, self._waiting), self._waiting[0])
        self._waiting.remove(warmup)
        return warmup

    async def _run_attempts(self, warmup: _PendingWarmup, warm_up: WarmUp) -> str | None:
        """Try until there is a result, and return it.

        None: another tenant has precedence, so the warm-up must wait again.
        """
        while not self._is_blocking_other_tenant(warmup):
            if self._clock.monotonic_s() - warmup.arrival.received_s > MAX_AGE_S:
                return "stale"
            warmup.num_tries += 1
            result = await _try_warm_up(warmup, warm_up)
            # These two results mean that requests were in flight. Another attempt may succeed.
            if result not in ("shed", "preempted") or warmup.num_tries >= MAX_TRIES:
                return result
            if not self._is_blocking_other_tenant(warmup):
                await asyncio.sleep(PAUSE_S)
        return None

    def _is_blocking_other_tenant(self, warmup: _PendingWarmup) -> bool:
        """Return whether this tenant must give up a running warm-up to another tenant (rule 4).

        True if the tenant has more than one, and a tenant without a running warm-up waits.
        """
        num_of_tenant = sum(running.tenant_id == warmup.tenant_id for running in self._running)
        return num_of_tenant > 1 and any(map(self._is_tenant_idle, self._waiting))

    def _is_tenant_idle(self, warmup: _PendingWarmup) -> bool:
        """Return whether no warm-up of this warm-up's tenant is running."""
        return all(running.tenant_id != warmup.tenant_id for running in self._running)

    def _preempt(self) -> None:
        """Cancel the latest running warm-up that blocks another tenant.

        A pausing warm-up need not be cancelled, because it checks this condition after its pause.
        """
        latest = next(filter(self._is_blocking_other_tenant, reversed(self._running)), None)
        if latest is not None and latest.attempt is not None:
            latest.attempt.cancel()
            latest.attempt = None  # cancel only once: it may take time to end

    def _is_first_request(self, scope: tuple[str, str]) -> bool:
        """Return whether the scope had no request for REMEMBERED_S.

        A scope is a namespace and a repository.
        """
        last_s = self._seen_s.get(scope, float("-inf"))
        return self._clock.monotonic_s() - last_s > REMEMBERED_S

    def _remember_request(self, scope: tuple[str, str]) -> None:
        """Store the time of the scope's last request."""
        self._seen_s[scope] = self._clock.monotonic_s()
        self._seen_s.move_to_end(scope)
        if len(self._seen_s) > _MAX_REMEMBERED:
            self._seen_s.popitem(last=False)


async def _try_warm_up(warmup: _PendingWarmup, warm_up: WarmUp) -> str:
    """Run one attempt, and return its result.

    The attempt is a separate task, so that it can be cancelled without the worker.
    """
    task = warmup.attempt = asyncio.ensure_future(warm_up(warmup.arrival))
    try:
        await asyncio.wait({task})
    finally:
        warmup.attempt = None
        task.cancel()  # if the worker was cancelled; otherwise the task has already ended
        (error,) = await asyncio.gather(task, return_exceptions=True)
    if error is None:
        return "warmed"
    if isinstance(error, asyncio.CancelledError):
        return "preempted"
    if isinstance(error, CompletionDropped):
        return error.finish_reason.value
    if isinstance(error, CompletionError):
        return error.code
    log.error("warm_up.internal_error", request_id=warmup.arrival.request_id, **describe(error))
    return "defect"
