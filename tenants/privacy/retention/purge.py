"""Purge of expired records, in batches.

Each batch is one transaction, which also adds the deleted records to the run's row. If a run is
killed, the next purge continues it with the same cutoff, or with an earlier one if the retention
period was extended meanwhile.

    run           running ------------------------------> finished
                  batch, batch, ... (killed, resumed)     counted; with a certificate and an audit
                                                          entry if records were deleted

Created records are not counted one by one: their number is computed from the counts of two runs.
New records could therefore hide that old records have vanished. To notice this, each run ends by
counting the remaining records from before its start. The next run begins by counting them again. A
lower count means that something other than a purge deleted records. Two data classes are exempt,
because other operations may delete their records (_ERASED_OTHERWISE).
"""

import random
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import structlog
from django.db.models import F
from django.utils.translation import gettext_noop

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.worker.failure_log import FailureLog
from tenants.models import PurgeRun, Tenant
from tenants.policy.data_classes import DATA_CLASSES, DataClass
from tenants.privacy.retention.certificates import issue_certificate
from tenants.privacy.retention.rules_in_force import load_hold_periods, load_rule
from tenants.privacy.retention.tables import RETENTION_TABLES, count_records, delete_due_batch
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import build_system_actor
from tenants.security.authorization.directory import list_tenants
from tenants.usage.rollups.dirty_hours import lock_rollups

BATCH: Final = 1_000  # records in one transaction
# Records of these classes are also deleted between runs: chunks of the retrieval index that are
# replaced, unused or no longer allowed, and expired idempotency records. The opening count of these
# classes is taken when the run begins.
_ERASED_OTHERWISE: Final = frozenset({DataClass.RETRIEVAL, DataClass.IDEMPOTENCY})
log = structlog.get_logger(__name__)


def purge_due(*, now: datetime, tenant_ids: Sequence[TenantId] | None = None) -> int:
    """Purge the tenants, and return how many records were deleted; `tenant_ids` None: all tenants.

    Raises SoftTimeLimitExceeded. Other errors are logged.
    """
    tenants_to_purge = list(list_tenants().values()) if tenant_ids is None else list(tenant_ids)
    # In a fixed order, the task's time limit would always cut off the same tenants.
    random.shuffle(tenants_to_purge)
    return sum(
        _purge_or_log(tenant_id, data_class, now)
        for tenant_id in tenants_to_purge
        for data_class in RETENTION_TABLES
    )


def _purge_or_log(tenant_id: TenantId, data_class: DataClass, now: datetime) -> int:
    """Purge a class and log an error, so that the other classes continue.

    If a class fails for days, the report shows its records as overdue.
    """
    with FailureLog("retention.not_purged", tenant_id=tenant_id, data_class=data_class):
        return purge_data_class(tenant_id=tenant_id, data_class=data_class, now=now)
    return 0


def purge_data_class(
    *, tenant_id: TenantId, data_class: DataClass, now: datetime, batch: int = BATCH
) -> int:
    """Purge a class, and return how many records the run has deleted.

    If this call continues an interrupted run, the number includes the records that were deleted
    before. `batch` is the number of records in one transaction.
    """
    run = _begin_run(tenant_id, data_class, now)
    while _delete_batch(run, batch, now):
        pass
    return _finish_run(run, now)


def _begin_run(tenant_id: TenantId, data_class: DataClass, now: datetime) -> PurgeRun:
    """Return the interrupted run, or a new one."""
    with tenant_scope(tenant_id):
        Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
        runs = PurgeRun.objects.filter(tenant_id=tenant_id, data_class=data_class)
        interrupted_run = runs.filter(finished_at=None).order_by("id").first()
        if interrupted_run is not None:
            return interrupted_run
        rule = load_rule(data_class, tenant_id=tenant_id)
        previous_run = runs.order_by("-created_at", "-id").first()
        if previous_run is not None and data_class not in _ERASED_OTHERWISE:
            _log_vanished_records(previous_run)
        cutoff = rule.compute_cutoff(now)
        # A finished run always has `closing`. Only the type checker needs the last condition.
        if data_class in _ERASED_OTHERWISE or previous_run is None or previous_run.closing is None:
            # Only `records` is used, which depends neither on the cutoff nor on holds.
            opening = count_records(
                data_class, tenant_id=tenant_id, cutoff=cutoff, holds=()
            ).records
        else:
            opening = previous_run.closing
        return PurgeRun.objects.create(
            tenant_id=tenant_id,
            data_class=data_class,
            days=rule.days,
            rule_version=rule.version,
            cutoff=cutoff,
            opening=opening,
            created_at=now,
        )


def _log_vanished_records(previous_run: PurgeRun) -> None:
    """Log an error if records have vanished since the last run.

    A record that arrives late, with an older time, hides a record that has vanished. Late records
    are rare.
    """
    if previous_run.num_older_remaining is None:
        return
    num_left = _count_older_records(previous_run)
    if num_left < previous_run.num_older_remaining:
        log.error(
            "retention.unexplained_deletion",
            tenant_id=str(previous_run.tenant_id),
            data_class=previous_run.data_class,
            records=previous_run.num_older_remaining - num_left,
        )


def _count_older_records(run: PurgeRun) -> int:
    """Return how many records are from before the run's start."""
    tables = RETENTION_TABLES[DataClass(run.data_class)]
    tenant_id = TenantId(str(run.tenant_id))
    return sum(table.select_older(tenant_id, run.created_at).count() for table in tables)


def _delete_batch(run: PurgeRun, batch: int, now: datetime) -> bool:
    """Delete a batch, and return whether there may be more.

    If the retention period was extended since the run began, the longer period applies from this
    batch on.
    """
    tenant_id, data_class = TenantId(str(run.tenant_id)), DataClass(run.data_class)
    with tenant_scope(tenant_id):
        # If a hold is placed meanwhile, it waits for this lock and applies from the next batch on.
        Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
        if data_class is DataClass.USAGE:
            # A rollup then sees either all records of an hour, or this run's updated row, which
            # shows that records were deleted.
            lock_rollups(tenant_id)
        current_cutoff = load_rule(data_class, tenant_id=tenant_id).compute_cutoff(now)
        run.cutoff = min(run.cutoff, current_cutoff)
        deleted = delete_due_batch(
            data_class,
            tenant_id=tenant_id,
            cutoff=run.cutoff,
            holds=load_hold_periods(tenant_id=tenant_id),
            limit=batch,
        )
        PurgeRun.objects.filter(tenant_id=tenant_id, id=run.id).update(
            deleted=F("deleted") + deleted, cutoff=run.cutoff
        )
        return deleted > 0


def _finish_run(run: PurgeRun, now: datetime) -> int:
    tenant_id, data_class = TenantId(str(run.tenant_id)), DataClass(run.data_class)
    with tenant_scope(tenant_id):
        Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)
        counts = count_records(
            data_class,
            tenant_id=tenant_id,
            cutoff=run.cutoff,
            holds=load_hold_periods(tenant_id=tenant_id),
        )
        num_updated = PurgeRun.objects.filter(
            tenant_id=tenant_id, id=run.id, finished_at=None
        ).update(
            closing=counts.records,
            num_older_remaining=_count_older_records(run),
            held=counts.held,
            finished_at=now,
        )
        run.refresh_from_db()
        # num_updated is 0 if another worker has finished the run meanwhile.
        if num_updated and run.deleted:
            _issue_certificate(run, now)
    return run.deleted


def _issue_certificate(run: PurgeRun, now: datetime) -> None:
    tenant_id = TenantId(str(run.tenant_id))
    assert run.closing is not None
    number = issue_certificate(
        tenant_id=tenant_id,
        facts={
            "data_class": run.data_class,
            "surface": DATA_CLASSES[DataClass(run.data_class)].surface,
            "method": gettext_noop("row deletion"),
            "reason": "retention",
            "retention_days": run.days,
            "rule_version": run.rule_version,
            "older_than": run.cutoff.isoformat(),
            "opening": run.opening,
            "created": run.closing + run.deleted - run.opening,
            "deleted": run.deleted,
            "closing": run.closing,
            "held": run.held,
            "began_at": run.created_at.isoformat(),
        },
        now=now,
    )
    record_change(
        actor=build_system_actor(tenant_id),
        action="retention.purged",
        target=f"retention:{run.data_class}",
        change=(None, {"deleted": run.deleted, "certificate": number}),
        now=now,
    )
