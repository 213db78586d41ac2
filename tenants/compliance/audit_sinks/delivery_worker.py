"""Delivery of new audit entries to each sink, in the order of the chain, at least once.

A worker claims a sink, delivers the entries after the sink's cursor and moves the cursor. Only the
worker that holds the claim moves the cursor. The claim of a killed worker expires. An entry that
was delivered but not recorded is delivered again with the same ID.

A task has one or more rounds. A round visits tenants, claims their sinks and delivers in batches. A
batch consists of runs, which deliver at the same time. A run delivers entries to one sink.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, Final

import structlog
from celery.exceptions import SoftTimeLimitExceeded
from django.db.models import F, Value
from django.db.models.functions import Coalesce

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import InvalidValue
from tenants.base.worker.failure_log import FailureLog
from tenants.compliance.audit_sinks.backoff import (
    compute_sink_backoff,
    compute_slow_sink_pause,
    make_due_condition,
)
from tenants.compliance.audit_sinks.delivery import INTERNAL_ERROR, Destination, SinkDeliveryError
from tenants.compliance.audit_sinks.messages import SinkMessage, build_message
from tenants.compliance.audit_sinks.operations import NOT_OPENED
from tenants.compliance.audit_sinks.secret_storage import SecretUnavailable, open_destination
from tenants.compliance.audit_sinks.syslog import send_syslog
from tenants.compliance.audit_sinks.webhook import webhook_sender
from tenants.models import AuditEntry, AuditSink
from tenants.security.audit.queries import find_head
from tenants.security.authorization.directory import list_tenants

MAX_MESSAGES: Final = 500  # in one run of a sink: all of them are in memory
# Maximum of sinks in a batch, to which the worker delivers concurrently; at least _MAX_OF_TENANT.
_MAX_AT_ONCE: Final = 32
_MAX_OF_TENANT: Final = 8  # sinks of a tenant in one round; then the other tenants follow
_MAX_WEBHOOK_RUN_S: Final = 2.0  # no further message after this; the other sinks follow
_MAX_TASK_S: Final = 20.0  # no further batch after this; the next task continues
# Longer than one run of a sink, including its last message. After this time the claim of a killed
# worker expires.
_CLAIM: Final = timedelta(seconds=60)

Clock = Callable[[], datetime]
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class DeliveryRun:
    """A claimed sink and the messages to deliver to it."""

    tenant_id: TenantId
    sink: AuditSink
    claimed_until: datetime
    messages: list[SinkMessage]
    destination: Destination | None  # None: the address cannot be decrypted or is not allowed
    error: str  # the reason why `destination` is None; otherwise ""


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    delivered_sequence: int | None  # of the last delivered entry; None: no entry was delivered
    error: str  # "": success
    took: timedelta  # the duration of the run


def deliver_due_entries(*, clock: Clock) -> int:
    """Deliver to all sinks that are due, and return the number of delivered entries.

    A sink with more entries than one run delivers has its next run in the next round, after each
    tenant had its turn. The order of tenants is random, so that _MAX_TASK_S does not always stop
    the task before the same tenants.
    """
    num_delivered = 0
    deadline_s = monotonic() + _MAX_TASK_S
    tenant_ids = list(list_tenants().values())
    random.shuffle(tenant_ids)
    while tenant_ids and monotonic() < deadline_s:
        deliveries = list(_deliver_to_tenants(tenant_ids, clock, deadline_s))
        num_delivered += sum(_count_delivered(run, result) for run, result in deliveries)
        tenant_ids = _list_tenants_behind(deliveries)
    return num_delivered


def _deliver_to_tenants(
    tenant_ids: Sequence[TenantId], clock: Clock, deadline_s: float
) -> Iterator[tuple[DeliveryRun, DeliveryResult]]:
    """Claim sinks and deliver to them in batches; yield the runs whose results were stored.

    After the deadline, no further batch begins.
    """
    runs_by_tenant = (_claim_due_or_log(tenant_id, clock()) for tenant_id in tenant_ids)
    for batch in _join_into_batches(runs_by_tenant):
        results = asyncio.run(_deliver_batch(batch, clock))
        for run, result in zip(batch, results, strict=True):
            if _store_result_or_log(run, result, clock()):
                yield run, result
        if monotonic() >= deadline_s:
            return


def _list_tenants_behind(
    deliveries: Sequence[tuple[DeliveryRun, DeliveryResult]],
) -> list[TenantId]:
    """Return the tenants that may have more entries to deliver now.

    A tenant with _MAX_OF_TENANT runs may have further sinks that are due. With fewer runs, because
    another worker claimed a sink or a result was not stored, they wait for the next task.
    """
    num_runs = Counter(run.tenant_id for run, _ in deliveries)
    tenant_ids = (
        run.tenant_id
        for run, result in deliveries
        if _has_more(run, result) or num_runs[run.tenant_id] == _MAX_OF_TENANT
    )
    return list(dict.fromkeys(tenant_ids))


def _claim_due_or_log(tenant_id: TenantId, now: datetime) -> list[DeliveryRun]:
    """Claim a tenant's sinks. Log any error, so that other tenants are not affected."""
    with FailureLog("audit.delivery_not_claimed", tenant_id=tenant_id):
        return list(_claim_due(tenant_id, now))
    return []


def _store_result_or_log(run: DeliveryRun, result: DeliveryResult, now: datetime) -> bool:
    """Record the result of a run. Log any error, and return whether there was none."""
    with FailureLog("audit.delivery_result_not_stored", tenant_id=run.tenant_id):
        _store_result(run, result, now)
        return True
    return False  # the result is lost, so the messages are delivered again, with the same IDs


def _claim_due(tenant_id: TenantId, now: datetime) -> Iterator[DeliveryRun]:
    """Claim at most _MAX_OF_TENANT sinks that are due and have entries to deliver."""
    with tenant_scope(tenant_id):
        rows = AuditSink.objects.filter(make_due_condition(now), tenant_id=tenant_id)
        # Sinks without a delivery come first, then those with the oldest delivery.
        due = list(rows.order_by(F("delivered_at").asc(nulls_first=True), "id"))
        # The head is queried only for tenants with due sinks: all tenants are checked every few
        # seconds, and most have no due sink.
        last = find_head(tenant_id=tenant_id).sequence if due else 0
        behind = [sink for sink in due if sink.delivered_sequence < last]
        runs = [_claim_sink(tenant_id, sink, now) for sink in behind[:_MAX_OF_TENANT]]
    yield from (run for run in runs if run is not None)


def _claim_sink(tenant_id: TenantId, sink: AuditSink, now: datetime) -> DeliveryRun | None:
    """Claim a sink; None: another worker has claimed it or delivered everything meanwhile."""
    until = now + _CLAIM
    rows = AuditSink.objects.filter(make_due_condition(now), tenant_id=tenant_id, id=sink.id)
    if not rows.update(claimed_until=until):
        return None
    sink.refresh_from_db()  # another worker may have moved the cursor before the claim
    entries = AuditEntry.objects.filter(
        tenant_id=tenant_id, sequence__gt=sink.delivered_sequence
    ).order_by("sequence")[:MAX_MESSAGES]
    try:
        destination, error = open_destination(tenant_id, sink), ""
    except SecretUnavailable:
        destination, error = None, NOT_OPENED
    except InvalidValue as refusal:
        destination, error = None, refusal.message
    messages = [build_message(entry) for entry in entries]
    if not messages:
        AuditSink.objects.filter(tenant_id=tenant_id, id=sink.id, claimed_until=until).update(
            claimed_until=None
        )
        return None
    return DeliveryRun(tenant_id, sink, until, messages, destination, error)


def _join_into_batches(
    runs_by_tenant: Iterator[list[DeliveryRun]],
) -> Iterator[list[DeliveryRun]]:
    """Yield batches of at most _MAX_AT_ONCE runs.

    The runs of a tenant are claimed together, so they are all in the same batch. If they were in
    two batches and the task ended between these, the sinks of the second batch would stay claimed,
    without a delivery, until the claim expires.
    """
    batch: list[DeliveryRun] = []
    for runs in runs_by_tenant:
        batch += runs
        if len(batch) > _MAX_AT_ONCE - _MAX_OF_TENANT:  # the next tenant's runs may not fit
            yield batch
            batch = []
    if batch:
        yield batch


async def _deliver_batch(batch: Sequence[DeliveryRun], clock: Clock) -> list[DeliveryResult]:
    return await asyncio.gather(*(_deliver_run(run, clock) for run in batch))


async def _deliver_run(run: DeliveryRun, clock: Clock) -> DeliveryResult:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    try:
        delivered_sequence, error = await _send_messages(run, clock)
    except SoftTimeLimitExceeded:
        raise
    # One sink's failure must not stop the others.
    except Exception as failure:  # noqa: BLE001
        logger.error(
            "audit.delivery_broken",
            tenant_id=run.tenant_id,
            sink_id=str(run.sink.id),
            error=type(failure).__name__,
        )
        delivered_sequence, error = None, INTERNAL_ERROR
    return DeliveryResult(delivered_sequence, error, timedelta(seconds=loop.time() - began_s))


async def _send_messages(run: DeliveryRun, clock: Clock) -> tuple[int | None, str]:
    """Send the run's messages. Return `delivered_sequence` and `error` of the DeliveryResult."""
    if run.destination is None:
        return None, run.error
    if run.destination.secret is not None:  # a webhook
        return await _send_one_by_one(run, run.destination, clock)
    try:
        await send_syslog(run.destination, run.messages)
    except SinkDeliveryError as error:
        return None, str(error)
    return run.messages[-1].sequence, ""


async def _send_one_by_one(
    run: DeliveryRun, destination: Destination, clock: Clock
) -> tuple[int | None, str]:
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + _MAX_WEBHOOK_RUN_S
    delivered_sequence: int | None = None
    async with webhook_sender(destination, clock) as sender:
        for message in run.messages:
            try:
                await sender.send_message(message)
            except SinkDeliveryError as error:
                return delivered_sequence, str(error)
            delivered_sequence = message.sequence
            if loop.time() >= deadline_s:
                break
    return delivered_sequence, ""


def _store_result(run: DeliveryRun, result: DeliveryResult, now: datetime) -> None:
    """Record the result of a run.

    The cursor moves only if the claim is still held. A replay ends the claim: an administrator has
    set the cursor, so that entries are delivered again. The sink's health is recorded in any case,
    so that a replay does not shorten the sink's wait.
    """
    cursor: dict[str, Any] = {"claimed_until": None}
    if result.delivered_sequence is not None:
        cursor |= {"delivered_sequence": result.delivered_sequence, "delivered_at": now}
    if result.error:
        health = _build_failure_fields(run, result, now)
        logger.warning(
            "audit.delivery_failed",
            tenant_id=run.tenant_id,
            sink_id=str(run.sink.id),
            num_failures=health["num_failures"],
            reason=result.error,
        )
    else:
        health = _build_success_fields(result, _count_delivered(run, result), now)
    with tenant_scope(run.tenant_id):
        rows = AuditSink.objects.filter(tenant_id=run.tenant_id, id=run.sink.id)
        if not rows.filter(claimed_until=run.claimed_until).update(**cursor, **health):
            rows.update(**health)


def _build_success_fields(
    result: DeliveryResult, num_delivered: int, now: datetime
) -> dict[str, Any]:
    pause = compute_slow_sink_pause(result.took, num_delivered)
    return {
        "failed_since": None,
        "last_error": "",
        "num_failures": 0,
        "next_attempt_at": None if pause is None else now + pause,
    }


def _build_failure_fields(
    run: DeliveryRun, result: DeliveryResult, now: datetime
) -> dict[str, Any]:
    # Failures are counted since the last delivered entry. `failed_since` is older if a run has
    # delivered some of its entries before it failed: it is the time since which no run succeeded.
    num_failures = 1 if result.delivered_sequence is not None else run.sink.num_failures + 1
    return {
        "failed_since": Coalesce(F("failed_since"), Value(now)),
        "last_error": result.error,
        "num_failures": num_failures,
        "next_attempt_at": now + compute_sink_backoff(num_failures),
    }


def _has_more(run: DeliveryRun, result: DeliveryResult) -> bool:
    """Return whether the sink may have more messages to deliver now. After an error it waits."""
    if result.delivered_sequence is None or result.error:
        return False
    is_full = len(run.messages) == MAX_MESSAGES
    return is_full or result.delivered_sequence != run.messages[-1].sequence


def _count_delivered(run: DeliveryRun, result: DeliveryResult) -> int:
    if result.delivered_sequence is None:
        return 0
    # The sequence has no gaps, so the difference is the number of entries.
    return result.delivered_sequence - run.sink.delivered_sequence
