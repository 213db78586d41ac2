"""Operations that create, test, replay, retry and delete sinks.

The secret of a webhook is shown only once, when its sink is created.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID, uuid4

from django.conf import settings
from django.db import IntegrityError, transaction

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, InvalidValue
from tenants.base.permissions import Permission
from tenants.base.validation.text import validate_printable
from tenants.compliance.audit_sinks.backoff import compute_sink_backoff
from tenants.compliance.audit_sinks.delivery import Destination, SinkDeliveryError
from tenants.compliance.audit_sinks.endpoint import SinkAddress, parse_address
from tenants.compliance.audit_sinks.messages import TEST, SinkMessage
from tenants.compliance.audit_sinks.queries import SinkView, build_sink_view, find_sink
from tenants.compliance.audit_sinks.secret_storage import (
    SecretUnavailable,
    create_secret,
    open_destination,
    seal_sink,
    shred_sink,
)
from tenants.compliance.audit_sinks.syslog import send_syslog
from tenants.compliance.audit_sinks.webhook import webhook_sender
from tenants.models import AuditSink
from tenants.security.audit.hash_chain import format_timestamp
from tenants.security.audit.operations import ChangeFields, record_change
from tenants.security.audit.queries import find_head
from tenants.security.authorization.actor import Actor

MAX_SINKS: Final = 100  # per tenant: each may need a connection every few seconds
MAX_NAME_CHARS: Final = 120
# The minimum time between an attempt and a retry by a user: workers must serve other sinks, too.
RETRY_AFTER: Final = timedelta(minutes=1)
NOT_OPENED: Final = "The address cannot be decrypted: the tenant's encryption keys are missing."


@dataclass(frozen=True, slots=True)
class NewSink:
    """A request for a new sink."""

    name: str
    address: str  # the scheme determines the kind
    from_sequence: int | None  # the first entry to deliver; None: only new entries


@dataclass(frozen=True, slots=True)
class CreatedSink:
    """A new sink, with the secret that signs its webhook messages."""

    sink: SinkView
    secret: str | None = field(repr=False)  # shown once; None: syslog


@dataclass(frozen=True, slots=True)
class TestResult:
    """The result of sending a test message."""

    delivered: bool
    error: str  # "": success


def create_sink(*, actor: Actor, new: NewSink, now: datetime) -> CreatedSink:
    """Create a sink. Raises Forbidden, InvalidValue, Conflict."""
    actor.require(Permission.WRITE_AUDIT_SINKS)
    address = parse_address(new.address, settings.PRIVATE_TARGETS)
    name = _read_name(new.name)
    secret = create_secret(address.kind)
    with tenant_scope(actor.tenant_id):
        if AuditSink.objects.filter(tenant_id=actor.tenant_id).count() >= MAX_SINKS:
            raise Conflict("You already have {most} sinks, which is the limit.", most=MAX_SINKS)
        last = find_head(tenant_id=actor.tenant_id).sequence
        cursor = last if new.from_sequence is None else _choose_cursor(new.from_sequence, last)
        row = _insert_sink(actor, name, address, secret, cursor, now)
        _record_change(actor, row, "created", (None, _to_change_fields(row)), now)
        # The change itself is an entry, and the view counts the entries that are not delivered yet.
        last = find_head(tenant_id=actor.tenant_id).sequence
    return CreatedSink(build_sink_view(row, last), secret)


def replay_sink(*, actor: Actor, sink_id: UUID, from_sequence: int, now: datetime) -> SinkView:
    """Deliver all entries from `from_sequence` again, or for the first time.

    A sink that waits for its next attempt still waits. Raises Forbidden, InvalidValue, NotFound.
    """
    actor.require(Permission.WRITE_AUDIT_SINKS)
    with tenant_scope(actor.tenant_id):
        row = find_sink(actor=actor, sink_id=sink_id)
        cursor = _choose_cursor(from_sequence, find_head(tenant_id=actor.tenant_id).sequence)
        # A worker that is delivering to the sink loses its claim and does not move the cursor.
        AuditSink.objects.filter(tenant_id=actor.tenant_id, id=sink_id).update(
            delivered_sequence=cursor, claimed_until=None
        )
        before: ChangeFields = {"delivered_sequence": row.delivered_sequence}
        _record_change(actor, row, "replayed", (before, {"delivered_sequence": cursor}), now)
        last = find_head(tenant_id=actor.tenant_id).sequence
        return build_sink_view(find_sink(actor=actor, sink_id=sink_id), last)


def retry_sink(*, actor: Actor, sink_id: UUID, now: datetime) -> SinkView:
    """End the sink's wait after failures, so that delivery is tried at once.

    The number of failures stays: if this attempt fails too, the next wait is longer. Raises
    Forbidden, NotFound, and Conflict if delivery was tried less than RETRY_AFTER ago.
    """
    actor.require(Permission.WRITE_AUDIT_SINKS)
    with tenant_scope(actor.tenant_id):
        row = find_sink(actor=actor, sink_id=sink_id)
        if row.num_failures and row.next_attempt_at is not None:
            # A failed attempt sets `next_attempt_at` from its own time and `num_failures`. A
            # `tried_at` after `now` was stored before the clock was set back, and is ignored.
            tried_at = row.next_attempt_at - compute_sink_backoff(row.num_failures)
            if tried_at <= now < tried_at + RETRY_AFTER:
                raise Conflict("Delivery was tried less than a minute ago. Try again in a minute.")
            _end_wait(actor, row)
            before: ChangeFields = {"next_attempt_at": format_timestamp(row.next_attempt_at)}
            _record_change(actor, row, "retried", (before, {"next_attempt_at": None}), now)
        last = find_head(tenant_id=actor.tenant_id).sequence
        return build_sink_view(find_sink(actor=actor, sink_id=sink_id), last)


def delete_sink(*, actor: Actor, sink_id: UUID, now: datetime) -> None:
    """Delete a sink, and destroy its encryption key. Raises Forbidden, NotFound."""
    actor.require(Permission.WRITE_AUDIT_SINKS)
    with tenant_scope(actor.tenant_id):
        row = find_sink(actor=actor, sink_id=sink_id)
        AuditSink.objects.filter(tenant_id=actor.tenant_id, id=sink_id).delete()
        shred_sink(actor.tenant_id, sink_id, now=now)
        _record_change(actor, row, "deleted", (_to_change_fields(row), None), now)


def probe_sink(*, actor: Actor, sink_id: UUID, clock: Callable[[], datetime]) -> TestResult:
    """Send a test message, and return the result. Takes up to `delivery.TIMEOUT_S`.

    After a success, a sink that waits after failures is tried at once. Raises Forbidden, NotFound.
    """
    actor.require(Permission.WRITE_AUDIT_SINKS)
    with tenant_scope(actor.tenant_id):
        row = find_sink(actor=actor, sink_id=sink_id)
    # No transaction is open during the delivery.
    test_result = _send_probe(actor, row, clock)
    with tenant_scope(actor.tenant_id):
        result: ChangeFields = {
            "delivered": test_result.delivered,
            "error": test_result.error,
        }
        if test_result.delivered and row.num_failures:
            _end_wait(actor, row)
        _record_change(actor, row, "tested", (None, result), clock())
    return test_result


def _end_wait(actor: Actor, row: AuditSink) -> None:
    """End the wait, unless the sink was tried meanwhile. Must run inside the tenant's scope."""
    AuditSink.objects.filter(
        tenant_id=actor.tenant_id, id=row.id, next_attempt_at=row.next_attempt_at
    ).update(next_attempt_at=None)


def _send_probe(actor: Actor, row: AuditSink, clock: Callable[[], datetime]) -> TestResult:
    moment = format_timestamp(clock())
    data = {"kind": "test", "tenant_id": actor.tenant_id, "sink": row.name, "at": moment}
    message = SinkMessage(id=str(uuid4()), kind=TEST, at=moment, sequence=None, data=data)
    try:
        destination = open_destination(actor.tenant_id, row)
        asyncio.run(_send_message(destination, message, clock))
    except SinkDeliveryError as error:
        return TestResult(delivered=False, error=str(error))
    except InvalidValue as error:
        return TestResult(delivered=False, error=error.message)
    except SecretUnavailable:
        return TestResult(delivered=False, error=NOT_OPENED)
    return TestResult(delivered=True, error="")


async def _send_message(
    destination: Destination, message: SinkMessage, clock: Callable[[], datetime]
) -> None:
    """Send a message. Raises SinkDeliveryError."""
    if destination.secret is None:
        await send_syslog(destination, [message])
        return
    async with webhook_sender(destination, clock) as sender:
        await sender.send_message(message)


def _insert_sink(
    actor: Actor,
    name: str,
    address: SinkAddress,
    secret: str | None,
    cursor: int,
    now: datetime,
) -> AuditSink:
    sink_id = uuid4()
    row = AuditSink(
        tenant_id=actor.tenant_id,
        id=sink_id,
        kind=address.kind,
        name=name,
        origin=address.origin,
        sealed=seal_sink(actor.tenant_id, sink_id, address, secret, now=now),
        created_at=now,
        delivered_sequence=cursor,
        last_error="",
    )
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict("A sink with this name already exists.") from error
    return row


def _read_name(text: str) -> str:
    name = text.strip()
    if not 1 <= len(name) <= MAX_NAME_CHARS:
        raise InvalidValue(
            "name", "Enter a sink name of 1 to {most} characters.", most=MAX_NAME_CHARS
        )
    validate_printable("name", name)
    return name


def _choose_cursor(from_sequence: int, last: int) -> int:
    """Return the cursor with which `from_sequence` is delivered next. Raises InvalidValue.

    `last` is the sequence of the newest entry. With `last + 1`, only new entries are delivered.
    """
    if not 1 <= from_sequence <= last + 1:
        raise InvalidValue(
            "from_sequence", "Enter an entry number from 1 to {last}.", last=last + 1
        )
    return from_sequence - 1


def _record_change(
    actor: Actor,
    row: AuditSink,
    action_suffix: str,
    change: tuple[ChangeFields | None, ChangeFields | None],  # before and after
    now: datetime,
) -> None:
    record_change(
        actor=actor,
        action=f"audit_sink.{action_suffix}",
        target=f"audit_sink:{row.id}",
        change=change,
        now=now,
    )


def _to_change_fields(row: AuditSink) -> ChangeFields:
    return {
        "kind": row.kind,
        "name": row.name,
        "origin": row.origin,
        "delivered_sequence": row.delivered_sequence,
    }
