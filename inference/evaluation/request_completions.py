"""Requests the completions of tasks from a pool, and filters them as a gateway does.

There are two differences from a gateway. A completion of a single line ends at its line break, even
if the line opens a block. If a replica fails, no other replica is tried.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from caret.contracts.api_key import Credential, KeyKind
from caret.contracts.policy import Isolation, Mode, TenantPolicy
from caret.contracts.snapshot import SCHEMA, TenantSnapshot, TenantStatus
from caret.contracts.usage import FinishReason
from caret.foundation.clock import SystemClock
from caret.foundation.environment import BadSetting
from caret.foundation.ids import CacheSalt, KeyId, LookupId, TenantId
from inference.completion.incoming_request import IncomingRequest, UnvalidatedRequest
from inference.completion.request import AdmittedRequest, Principal
from inference.completion.request_trace import RequestTrace
from inference.completion.variant import NO_VARIANT
from inference.context.assemble import assemble
from inference.context.prompt.prompt_writer import PromptWriter
from inference.errors import CompletionError
from inference.evaluation.task import Task
from inference.filtering.filter import filter
from inference.gateway.receive import receive
from inference.pools.engine import Engine, EngineRequest
from inference.pools.pool_config import Pool, Replica

NUM_AT_ONCE: Final = 4  # completions in flight
LOWEST_PRIORITY: Final = 100  # users' requests leave an engine's queue first
_TENANT: Final = TenantId("evaluation")
# The stages need a principal. Its policy allows all modes, and keeps the default: secrets are
# filtered.
_SNAPSHOT: Final = TenantSnapshot(
    schema=SCHEMA,
    tenant_id=_TENANT,
    slug="evaluation",
    version=1,
    status=TenantStatus.ACTIVE,
    cache_epoch=0,
    policy=TenantPolicy(
        features=frozenset(Mode),
        content_exclusion={},
        max_concurrent_completions=NUM_AT_ONCE,
        isolation=Isolation.SHARED,
    ),
    credentials=(
        Credential(
            key_id=KeyId("evaluation"),
            lookup_id=LookupId("evaluation"),
            digest=bytes(32),
            pepper_version=1,
            kind=KeyKind.TEST,
            user_id=None,
            expires_at_ms=None,
            revoked_at_ms=None,
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A pool to evaluate, with the layout of its prompts."""

    pool: Pool
    writer: PromptWriter


@dataclass(frozen=True, slots=True)
class TaskCompletion:
    """A pool's response to a task."""

    task: Task
    text: str  # as a user would see it
    first_text_ms: float | None  # from the start to the first visible text; None: no text
    total_ms: float  # from the start to the end
    error: str = ""  # the error's code; "": none


async def request_completions(
    engine: Engine,
    subject: Subject,
    tasks: Sequence[Task],
    *,
    report_progress: Callable[[int], None],
) -> list[TaskCompletion]:
    """Return the completions in the order of the tasks.

    `report_progress` gets the number of finished tasks after each task. Raises BadSetting if the
    pool has no replicas, or if the requests of all tasks fail.
    """
    pool = subject.pool
    if not pool.replicas:
        raise BadSetting(f"--pool: the pool {pool.name} has no replicas in the pools file.")
    slots = asyncio.Semaphore(NUM_AT_ONCE)
    salt = CacheSalt(secrets.token_hex(32))  # an evaluation shares no cache with tenants
    num_done = 0

    async def complete(number: int, task: Task) -> TaskCompletion:
        nonlocal num_done
        async with slots:
            replica = pool.replicas[number % len(pool.replicas)]
            completion = await _complete(engine, subject, replica, salt, task)
        num_done += 1
        report_progress(num_done)
        return completion

    completions = await asyncio.gather(
        *(complete(number, task) for number, task in enumerate(tasks))
    )
    if all(completion.error for completion in completions):
        first_error = completions[0].error
        raise BadSetting(
            f"--pool: the pool {pool.name} answered none of {len(tasks)} tasks: {first_error}."
        )
    return completions


async def _complete(
    engine: Engine, subject: Subject, replica: Replica, salt: CacheSalt, task: Task
) -> TaskCompletion:
    started_s = time.monotonic()
    first_text_ms: float | None = None
    texts: list[str] = []
    try:
        admitted, trace = _build_admitted_request(task)
        prompt = assemble(subject.writer, admitted)
        request = EngineRequest(
            pool=subject.pool,
            replica=replica,
            token_ids=prompt.token_ids,
            stop_token_ids=prompt.stop_token_ids,
            required_prefix=prompt.healed_prefix,
            stop=("\n",) if prompt.is_single_line else (),
            max_tokens=admitted.request.max_tokens,
            salt=salt,
            priority=LOWEST_PRIORITY,
        )
        async with (
            engine.complete(request) as chunks,
            filter(chunks, admitted, prompt, trace) as visible_texts,
        ):
            async for text in visible_texts:
                if first_text_ms is None:
                    first_text_ms = (time.monotonic() - started_s) * 1000
                texts.append(text)
    except CompletionError as error:
        total_ms = (time.monotonic() - started_s) * 1000
        return TaskCompletion(
            task, text="", first_text_ms=None, total_ms=total_ms, error=error.code
        )
    # The client of a filtered completion is told to show nothing, even if some text was sent.
    text = "" if trace.finish_reason is FinishReason.FILTERED else "".join(texts)
    return TaskCompletion(task, text, first_text_ms, (time.monotonic() - started_s) * 1000)


def _build_admitted_request(task: Task) -> tuple[AdmittedRequest, RequestTrace]:
    """Return the task's request as if the gateway had admitted it. Raises BadRequest."""
    draft = UnvalidatedRequest(
        mode=task.mode,
        prefix=task.prefix,
        suffix=task.suffix,
        path=task.path,
        language=task.language,
    )
    arrival = IncomingRequest(
        protocol="evaluation",
        key_text=None,
        address=None,
        draft=draft,
        received_s=0.0,
        occurred_at_ms=0,
    )
    request = receive(arrival)
    principal = Principal(credential=_SNAPSHOT.credentials[0], snapshot=_SNAPSHOT)
    admitted = AdmittedRequest(principal, request, pool="", variant=NO_VARIANT)
    return admitted, RequestTrace(arrival=arrival, clock=SystemClock())
