"""Lookup of one completion's record by its ID."""

import uuid
from datetime import datetime

from django.db.models import Min

from caret.contracts.policy import Mode, Tier, Trigger
from caret.contracts.usage import CompletionRecord, FinishReason
from caret.foundation.clock import from_unix_ms, to_unix_ms
from caret.foundation.ids import KeyId, RequestId, TenantId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import NotFound
from tenants.models import Outcome, UsageRecord
from tenants.security.audit.operations import record_read
from tenants.security.authorization.actor import Actor, build_system_actor
from tenants.security.authorization.directory import list_tenants
from tenants.usage.reports.filters import filter_visible_records
from tenants.usage.rollups.dirty_hours import MAX_ID_DEVIATION


def find_request(
    *, actor: Actor, request_id: uuid.UUID, now: datetime, reason: str = ""
) -> CompletionRecord:
    """Return a request's record.

    One query over the primary key, in one or two monthly partitions. Unless the request is the
    actor's own, the read is recorded in the audit log.

    Raises Forbidden, and NotFound for a request that does not exist, is not ingested yet or is not
    visible to the actor.
    """
    try:
        # The first 48 of 128 bits of a version 7 UUID are its time in Unix milliseconds.
        made_at = from_unix_ms(request_id.int >> 80)
        first, last = made_at - MAX_ID_DEVIATION, made_at + MAX_ID_DEVIATION
    except OverflowError:  # not a version 7 UUID
        raise _make_not_found_error() from None
    with tenant_scope(actor.tenant_id):
        row = (
            filter_visible_records(actor, UsageRecord.objects.all())
            .filter(
                occurred_at__gt=first,
                occurred_at__lt=last,
                request_id=request_id,
            )
            .order_by("occurred_at")
            .first()
        )
        if row is None:
            raise _make_not_found_error()
        if actor.user_id is None or actor.user_id != str(row.user_id):
            record_read(
                actor=actor,
                action="request.explained",
                target=f"request:{request_id}",
                now=now,
                reason=reason,
            )
    return _to_completion_record(row)


def find_display_ms(*, tenant_id: TenantId, request_id: uuid.UUID) -> int | None:
    """Return a request's display latency in ms, as the client reported it; None: not reported.

    Checks no permission: call this only for a request that `find_request` has returned. One query
    over an index.
    """
    with tenant_scope(tenant_id):
        reported_outcomes = Outcome.objects.filter(request_id=request_id, display_ms__isnull=False)
        shortest: int | None = reported_outcomes.aggregate(shortest=Min("display_ms"))["shortest"]
    return shortest


def find_request_as_operator(
    *, request_id: uuid.UUID, now: datetime, slug: str | None = None, reason: str = ""
) -> tuple[str, CompletionRecord]:
    """Return the tenant's slug and the record, for operators.

    Searches only the tenant `slug`; None: searches each tenant in its own scope until one has the
    record. Raises NotFound.
    """
    for tenant_slug, tenant_id in list_tenants().items():
        if slug is not None and tenant_slug != slug:
            continue
        try:
            actor = build_system_actor(tenant_id)
            return tenant_slug, find_request(
                actor=actor, request_id=request_id, now=now, reason=reason
            )
        except NotFound:
            continue
    raise _make_not_found_error()


def _make_not_found_error() -> NotFound:
    return NotFound("This request does not exist, or its record has not arrived yet.")


def _to_completion_record(row: UsageRecord) -> CompletionRecord:
    """Return the record. Fields that were added after it was written get defaults."""
    return CompletionRecord(
        request_id=RequestId(str(row.request_id)),
        tenant_id=TenantId(str(row.tenant_id)),
        user_id=None if row.user_id is None else UserId(str(row.user_id)),
        key_id=KeyId(str(row.key_id)),
        occurred_at_ms=to_unix_ms(row.occurred_at),
        protocol=row.protocol,
        mode=Mode(row.mode),
        language=row.language,
        tier=Tier(row.tier),
        pool=row.pool,
        replica=row.replica,
        finish_reason=FinishReason(row.finish_reason),
        error_code=row.error_code,
        prompt_tokens=row.prompt_tokens,
        cached_tokens=row.cached_tokens,
        generated_tokens=row.generated_tokens,
        assemble_ms=row.assemble_ms,
        first_token_ms=row.first_token_ms,
        engine_ms=row.engine_ms,
        total_ms=row.total_ms,
        trigger=Trigger(row.trigger or Trigger.AUTOMATIC),
        variant=row.variant or "",
        filter_reason=row.filter_reason or "",
        num_files=row.num_files or 0,
        num_snippets=row.num_snippets or 0,
        authenticated_ms=row.authenticated_ms,
        admitted_ms=row.admitted_ms,
        routed_ms=row.routed_ms,
        num_in_flight_at_replica=row.num_in_flight_at_replica,
        editor=row.editor or "",
        model=row.model or "",
        num_chars=row.num_chars or 0,
        num_lines=row.num_lines or 0,
        is_syntax_checked=bool(row.is_syntax_checked),
    )
