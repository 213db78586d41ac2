"""Queries of retention: the report, previews, runs, holds and certificates."""

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db.models import Model

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import NotFound
from tenants.base.pagination import (
    Page,
    PagePosition,
    build_page,
    decode_cursor,
    fetch_page_rows,
    map_page,
)
from tenants.base.permissions import Permission
from tenants.models import DeletionCertificate, LegalHold, PurgeRun
from tenants.policy.data_classes import DATA_CLASSES, DataClass, DataClassTerms
from tenants.policy.queries import load_active_policy
from tenants.privacy.retention.operations import NewHold, check_coverage, require_days
from tenants.privacy.retention.rules_in_force import EffectiveRule, load_hold_periods, load_rules
from tenants.privacy.retention.tables import (
    RETENTION_TABLES,
    HoldPeriod,
    RecordCounts,
    count_overdue_records,
    count_records,
    count_records_on_hold,
    find_oldest_records,
)
from tenants.security.authorization.actor import Actor

# A purge runs every six hours. Records that still exist this long after their retention period are
# overdue, unless they are on hold.
GRACE: Final = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class RunView:
    """A purge run. tenants.models.PurgeRun explains the counts."""

    id: uuid.UUID
    data_class: DataClass
    days: int
    rule_version: int | None  # None: no rule was set yet
    cutoff: datetime
    opening: int
    created: int | None  # None: the run is not finished
    deleted: int
    closing: int | None
    held: int | None
    began_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class DataClassReport:
    data_class: DataClass
    terms: DataClassTerms
    rule: EffectiveRule
    count: RecordCounts | None  # None: a purge does not count this class
    overdue: int  # records older than the rule's days plus GRACE, and not on hold; should be 0
    last_run: RunView | None  # None: no run yet


@dataclass(frozen=True, slots=True)
class PurgePreview:
    days: int  # as requested, even if the policy's days are fewer
    records: int  # stored now, including those that would be deleted
    would_delete: int
    would_hold: int  # old enough to delete, but on hold, or after a kept record of a chain
    oldest_at: datetime | None  # None: no records


@dataclass(frozen=True, slots=True)
class HoldView:
    id: uuid.UUID
    name: str
    user_id: uuid.UUID | None  # None: all users
    # The period of the data, half-open; None: unbounded.
    since: datetime | None
    until: datetime | None
    reason: str
    created_at: datetime
    released_at: datetime | None  # None: in force


@dataclass(frozen=True, slots=True)
class CertificateView:
    id: uuid.UUID
    number: int
    created_at: datetime
    document: str  # canonical JSON, as it was signed


def list_data_class_reports(*, actor: Actor, now: datetime) -> list[DataClassReport]:
    """Return a report for each data class.

    Up to three queries, and up to eight for each class. Raises Forbidden.
    """
    actor.require(Permission.READ_RETENTION)
    with tenant_scope(actor.tenant_id):
        rules = load_rules(tenant_id=actor.tenant_id)
        return [
            _build_class_report(actor, data_class, rules[data_class], now)
            for data_class in DATA_CLASSES
        ]


@dataclass(frozen=True, slots=True)
class DataClassStatus:
    """The status of a data class, without counting all its records."""

    data_class: DataClass
    terms: DataClassTerms
    rule: EffectiveRule
    is_shortened: bool  # by the policy
    is_counted: bool  # False: a purge neither counts nor deletes records of this class
    oldest_at: datetime | None  # None: no records, or not counted
    overdue: int  # records older than the rule's days plus GRACE, and not on hold; should be 0
    last_run: RunView | None  # None: no run yet


def list_data_class_statuses(*, actor: Actor, now: datetime) -> list[DataClassStatus]:
    """Return the status of all data classes. Up to eight queries. Raises Forbidden."""
    actor.require(Permission.READ_RETENTION)
    with tenant_scope(actor.tenant_id):
        rules = load_rules(tenant_id=actor.tenant_id)
        oldest = find_oldest_records(actor.tenant_id)
        overdue = count_overdue_records(
            actor.tenant_id,
            {
                data_class: rules[data_class].compute_cutoff(now) - GRACE
                for data_class in RETENTION_TABLES
            },
            load_hold_periods(tenant_id=actor.tenant_id),
        )
        last = _find_last_runs(actor)
    return [
        DataClassStatus(
            data_class=data_class,
            terms=DATA_CLASSES[data_class],
            rule=rule,
            is_shortened=rule.is_shortened,
            is_counted=data_class in RETENTION_TABLES,
            oldest_at=oldest.get(data_class),
            overdue=overdue.get(data_class, 0),
            last_run=last.get(data_class),
        )
        for data_class, rule in rules.items()
    ]


def find_rule(*, actor: Actor, data_class: DataClass) -> EffectiveRule:
    """Return the rule of a data class. Up to three queries. Raises Forbidden."""
    actor.require(Permission.READ_RETENTION)
    with tenant_scope(actor.tenant_id):
        return load_rules(tenant_id=actor.tenant_id)[data_class]


def _find_last_runs(actor: Actor) -> dict[DataClass, RunView]:
    rows = PurgeRun.objects.filter(tenant_id=actor.tenant_id)
    newest = rows.order_by("data_class", "-created_at", "-id").distinct("data_class")
    return {DataClass(row.data_class): _to_run_view(row) for row in newest}


def find_hold(*, actor: Actor, hold_id: uuid.UUID) -> HoldView:
    """Return one legal hold. Raises Forbidden, NotFound."""
    actor.require(Permission.READ_RETENTION)
    with tenant_scope(actor.tenant_id):
        rows = LegalHold.objects.filter(tenant_id=actor.tenant_id, id=hold_id)
        row = rows.order_by("id").first()
    if row is None:
        raise NotFound("This legal hold does not exist.")
    return _to_hold_view(row)


def preview_purge(*, actor: Actor, data_class: DataClass, days: int, now: datetime) -> PurgePreview:
    """Count the records that a purge would delete now with a rule of this number of days.

    If the policy has fewer days, these apply, as in a purge. Raises Forbidden, InvalidValue, and
    Conflict for a class with fixed days.
    """
    actor.require(Permission.READ_RETENTION)
    require_days(DATA_CLASSES[data_class], days)
    with tenant_scope(actor.tenant_id):
        policy_days = load_active_policy(tenant_id=actor.tenant_id).retention_days.get(data_class)
        counts = count_records(
            data_class,
            tenant_id=actor.tenant_id,
            cutoff=now - timedelta(days=min(days, policy_days or days)),
            holds=load_hold_periods(tenant_id=actor.tenant_id),
        )
    return PurgePreview(days, counts.records, counts.due, counts.held, counts.oldest_at)


@dataclass(frozen=True, slots=True)
class HoldEffect:
    """The effect of a legal hold on a data class, if it were placed now."""

    data_class: DataClass
    title: str  # English
    covered: int  # records of any age that the hold covers
    saved: int  # records that are due now and would no longer be


def preview_hold(*, actor: Actor, new: NewHold, now: datetime) -> list[HoldEffect]:
    """Return the effect of a hold on each data class that a purge deletes.

    Reads all rows of the tenant. Raises Forbidden, InvalidValue.
    """
    actor.require(Permission.WRITE_LEGAL_HOLDS)
    hold = HoldPeriod(new.user_id, new.since, new.until)
    with tenant_scope(actor.tenant_id):
        check_coverage(actor, new)
        rules = load_rules(tenant_id=actor.tenant_id)
        hold_periods = load_hold_periods(tenant_id=actor.tenant_id)
        effects = []
        for data_class in RETENTION_TABLES:
            cutoff = now - timedelta(days=rules[data_class].days)
            due_now, due_with_hold = (
                count_records(data_class, tenant_id=actor.tenant_id, cutoff=cutoff, holds=holds).due
                for holds in (hold_periods, (*hold_periods, hold))
            )
            covered = count_records_on_hold(data_class, tenant_id=actor.tenant_id, hold=hold)
            title = DATA_CLASSES[data_class].title
            effects.append(HoldEffect(data_class, title, covered, due_now - due_with_hold))
    return effects


def list_runs(*, actor: Actor, limit: int, cursor: str | None) -> Page[RunView]:
    """Return a page of purge runs, newest first. Raises Forbidden, InvalidValue."""
    return map_page(_list_newest(PurgeRun, actor, limit, cursor), _to_run_view)


def list_holds(*, actor: Actor, limit: int, cursor: str | None) -> Page[HoldView]:
    """Return a page of holds, newest first, including released ones.

    Raises Forbidden, InvalidValue.
    """
    return map_page(_list_newest(LegalHold, actor, limit, cursor), _to_hold_view)


def list_certificates(*, actor: Actor, limit: int, cursor: str | None) -> Page[CertificateView]:
    """Return a page of certificates, newest first. Raises Forbidden, InvalidValue."""
    return map_page(_list_newest(DeletionCertificate, actor, limit, cursor), _to_certificate_view)


def find_certificate(*, actor: Actor, certificate_id: uuid.UUID) -> CertificateView:
    """Return one certificate. Raises Forbidden, NotFound."""
    actor.require(Permission.READ_RETENTION)
    with tenant_scope(actor.tenant_id):
        row = (
            DeletionCertificate.objects.filter(tenant_id=actor.tenant_id, id=certificate_id)
            .order_by("id")
            .first()
        )
    if row is None:
        raise NotFound("This certificate does not exist.")
    return _to_certificate_view(row)


def _list_newest(model: type[Model], actor: Actor, limit: int, cursor: str | None) -> Page[Any]:
    actor.require(Permission.READ_RETENTION)
    after = decode_cursor(cursor)
    with tenant_scope(actor.tenant_id):
        queryset = model._default_manager.filter(tenant_id=actor.tenant_id)
        rows: list[Any] = fetch_page_rows(queryset, limit=limit, after=after)
    return build_page(
        rows, limit=limit, get_position=lambda row: PagePosition(row.created_at, row.id)
    )


def _build_class_report(
    actor: Actor, data_class: DataClass, rule: EffectiveRule, now: datetime
) -> DataClassReport:
    terms = DATA_CLASSES[data_class]
    if data_class not in RETENTION_TABLES:
        return DataClassReport(data_class, terms, rule, count=None, overdue=0, last_run=None)
    holds = load_hold_periods(tenant_id=actor.tenant_id)
    cutoff = rule.compute_cutoff(now)
    counts = count_records(data_class, tenant_id=actor.tenant_id, cutoff=cutoff, holds=holds)
    overdue_counts = count_records(
        data_class, tenant_id=actor.tenant_id, cutoff=cutoff - GRACE, holds=holds
    )
    runs = PurgeRun.objects.filter(tenant_id=actor.tenant_id, data_class=data_class)
    last = runs.order_by("-created_at", "-id").first()
    last_run = None if last is None else _to_run_view(last)
    return DataClassReport(data_class, terms, rule, counts, overdue_counts.due, last_run)


def _to_run_view(row: PurgeRun) -> RunView:
    return RunView(
        id=row.id,
        data_class=DataClass(row.data_class),
        days=row.days,
        rule_version=row.rule_version,
        cutoff=row.cutoff,
        opening=row.opening,
        created=None if row.closing is None else row.closing + row.deleted - row.opening,
        deleted=row.deleted,
        closing=row.closing,
        held=row.held,
        began_at=row.created_at,
        finished_at=row.finished_at,
    )


def _to_hold_view(row: LegalHold) -> HoldView:
    return HoldView(
        id=row.id,
        name=row.name,
        user_id=row.user_id,
        since=row.since,
        until=row.until,
        reason=row.reason,
        created_at=row.created_at,
        released_at=row.released_at,
    )


def _to_certificate_view(row: DeletionCertificate) -> CertificateView:
    return CertificateView(row.id, row.number, row.created_at, row.document)
