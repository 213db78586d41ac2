"""The worker that performs erasures, each in many transactions.

A crash loses at most the current transaction. Repeating a committed transaction changes nothing.

    pseudonymize usage, month by month > anonymize > purge a tenant's other data > erase captured
    content > expire exports > look for records that have arrived meanwhile > certify
"""

import uuid
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.worker.failure_log import FailureLog
from tenants.compliance.data_subjects import anonymization, pseudonymization, tenant_purge
from tenants.compliance.data_subjects.data_inventory import DataSubject
from tenants.compliance.data_subjects.erasure_certificate import build_certificate_facts
from tenants.compliance.data_subjects.operations import find_legal_holds
from tenants.compliance.exports.jobs.cleanup import expire_finished_exports
from tenants.models import ContentObject, Erasure, Membership, Tenant
from tenants.privacy.content_capture import erasure as content_erasure
from tenants.privacy.retention.certificates import issue_certificate
from tenants.privacy.retention.tables import HoldPeriod
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import build_system_actor
from tenants.security.authorization.directory import list_tenants

_MAX_ATTEMPTS: Final = 5  # of run_erasure
# An offline gateway keeps its records in a journal, and delivers them when it is online again.
# Records that arrive later than this after an erasure are not pseudonymized.
_MAX_DELIVERY_DELAY: Final = timedelta(days=7)


def run_due_erasures(*, now: datetime) -> int:
    """Run the erasures of all tenants, and return how many were finished.

    The failure of a tenant is logged, and does not stop the run. Its erasures are not counted.
    """
    return sum(_run_erasures_of_tenant(tenant_id, now) for tenant_id in list_tenants().values())


def run_erasure_once(*, tenant_id: TenantId, erasure_id: uuid.UUID, now: datetime) -> bool:
    """Run an erasure, and return whether it is finished.

    Records that arrive meanwhile are left to the next run. Raises redis.RedisError and errors of
    the object store. Data that is already erased then stays erased.
    """
    row = _find_erasure(tenant_id, erasure_id)
    if row.finished_at is not None:
        return True
    for user_id in _list_user_ids(row):
        _erase_person(row, user_id, now)
    if row.user_id is None:
        _purge_tenant(row, now)
    content_erasure.erase_requested_content(tenant_id=tenant_id, now=now)
    # Finished exports may contain the user's data, and so may the rows read for running exports.
    expire_finished_exports(tenant_id=tenant_id, now=now)
    return _finish_erasure(row, now)


def run_erasure(*, tenant_id: TenantId, erasure_id: uuid.UUID, now: datetime) -> bool:
    """Run an erasure until it is finished, for a caller that waits.

    Returns False if new records arrived in each attempt. Raises the errors of run_erasure_once.
    """
    return any(
        run_erasure_once(tenant_id=tenant_id, erasure_id=erasure_id, now=now)
        for _ in range(_MAX_ATTEMPTS)
    )


def pseudonymize_late_records(*, now: datetime) -> None:
    """Pseudonymize records of all tenants that gateways delivered after a user's erasure.

    A failure of one tenant does not stop the others.
    """
    for tenant_id in list_tenants().values():
        with FailureLog("subject.not_pseudonymized", tenant_id=tenant_id):
            _pseudonymize_late_records_of_tenant(tenant_id, now)


def _pseudonymize_late_records_of_tenant(tenant_id: TenantId, now: datetime) -> None:
    with tenant_scope(tenant_id):
        recent = Erasure.objects.filter(
            tenant_id=tenant_id, finished_at__gt=now - _MAX_DELIVERY_DELAY, user_id__isnull=False
        )
        rows = list(recent.order_by("id"))
    for row in rows:
        _pseudonymize_late_records_of_user(row, now)


def _pseudonymize_late_records_of_user(row: Erasure, now: datetime) -> None:
    tenant_id = TenantId(str(row.tenant_id))
    assert row.user_id is not None, "this is the erasure of a user"
    with tenant_scope(tenant_id):
        _lock_tenant(tenant_id)
        # A user who has joined again since the erasure is an ordinary member.
        membership = Membership.objects.filter(tenant_id=tenant_id, user_id=row.user_id)
        if not membership.filter(ended_at__isnull=False).exists():
            return
        pseudonymization.pseudonymize_time_range(
            tenant_id,
            # A record that is delivered late is up to _MAX_DELIVERY_DELAY older than the erasure.
            (row.requested_at - _MAX_DELIVERY_DELAY, now + pseudonymization.MAX_CLOCK_LEAD),
            user_id=row.user_id,
            pseudonym=uuid.uuid4(),  # a new one: the secret of the first pseudonym is deleted
            holds=_find_hold_periods(tenant_id, row.user_id),
        )


def _purge_tenant(row: Erasure, now: datetime) -> None:
    tenant_purge.purge_tenant(row, now=now, add_counts=partial(_add_counts, row))


def _run_erasures_of_tenant(tenant_id: TenantId, now: datetime) -> int:
    with tenant_scope(tenant_id):
        pending = Erasure.objects.filter(tenant_id=tenant_id, finished_at=None)
        ids = list(pending.order_by("id").values_list("id", flat=True))
    with FailureLog("subject.not_erased", tenant_id=tenant_id):
        return sum(
            run_erasure_once(tenant_id=tenant_id, erasure_id=erasure_id, now=now)
            for erasure_id in ids
        )
    return 0


def _find_erasure(tenant_id: TenantId, erasure_id: uuid.UUID) -> Erasure:
    with tenant_scope(tenant_id):
        return Erasure.objects.get(tenant_id=tenant_id, id=erasure_id)


def _list_user_ids(row: Erasure) -> list[uuid.UUID]:
    """Return the user to erase, or all users that are or were members of the tenant to erase."""
    if row.user_id is not None:
        return [row.user_id]
    with tenant_scope(TenantId(str(row.tenant_id))):
        members = Membership.objects.filter(tenant_id=row.tenant_id).order_by("user_id")
        return list(members.values_list("user_id", flat=True))


def _erase_person(row: Erasure, user_id: uuid.UUID, now: datetime) -> None:
    """Pseudonymize usage that is not on hold. Without a hold, also anonymize the other rows."""
    tenant_id = TenantId(str(row.tenant_id))
    assert row.secret is not None, "the erasure is in progress"
    pseudonym = pseudonymization.compute_pseudonym(bytes(row.secret), user_id)
    with tenant_scope(tenant_id):
        months = pseudonymization.list_months(tenant_id, now=now)
    for month in months:
        with tenant_scope(tenant_id):
            _lock_tenant(tenant_id)
            holds = _find_hold_periods(tenant_id, user_id)
            row_counts = pseudonymization.pseudonymize_time_range(
                tenant_id, month, user_id=user_id, pseudonym=pseudonym, holds=holds
            )
            _add_counts(row, row_counts)
    with tenant_scope(tenant_id):
        _lock_tenant(tenant_id)
        if not find_legal_holds(tenant_id, user_id):
            _anonymize_user(row, user_id, now)


def _anonymize_user(row: Erasure, user_id: uuid.UUID, now: datetime) -> None:
    tenant_id = TenantId(str(row.tenant_id))
    member = Membership.objects.select_related("user").get(tenant_id=tenant_id, user_id=user_id)
    num_spend_rows = pseudonymization.pseudonymize_spend(tenant_id, user_id)
    counts = anonymization.anonymize_subject(
        DataSubject(tenant_id, user_id, member.user.email), now
    )
    _add_counts(row, {**counts, "tenants_month_spend": num_spend_rows})


def _finish_erasure(row: Erasure, now: datetime) -> bool:
    """Finish the erasure, and return True. Return False if there is data left to erase.

    Gateways may have delivered new records in the meantime.
    """
    tenant_id = TenantId(str(row.tenant_id))
    with tenant_scope(tenant_id):
        _lock_tenant(tenant_id)
        if any(_has_remaining_data(tenant_id, user_id) for user_id in _list_user_ids(row)):
            return False
        holds = [] if row.user_id is None else find_legal_holds(tenant_id, row.user_id)
        num_updated = Erasure.objects.filter(
            tenant_id=tenant_id, id=row.id, finished_at=None
        ).update(finished_at=now, secret=None, legal_hold_ids=[str(hold.id) for hold in holds])
        row.refresh_from_db()
        if num_updated:
            _issue_certificate(row, now)
    return True


def _issue_certificate(row: Erasure, now: datetime) -> None:
    tenant_id = TenantId(str(row.tenant_id))
    number = issue_certificate(tenant_id=tenant_id, facts=build_certificate_facts(row), now=now)
    slug = Tenant.objects.values_list("slug", flat=True).get(id=tenant_id)
    record_change(
        actor=build_system_actor(tenant_id),
        action="tenant.erased" if row.user_id is None else "data_subject.erased",
        target=f"tenant:{slug}" if row.user_id is None else f"user:{row.user_id}",
        change=(None, {"certificate": number}),
        now=now,
    )


def _has_remaining_data(tenant_id: TenantId, user_id: uuid.UUID) -> bool:
    """Return whether rows that are not on hold, or captured content, still belong to the user."""
    holds = _find_hold_periods(tenant_id, user_id)
    objects = ContentObject.objects.filter(tenant_id=tenant_id, user_id=user_id)
    return pseudonymization.count_remaining(tenant_id, user_id, holds) > 0 or objects.exists()


def _find_hold_periods(tenant_id: TenantId, user_id: uuid.UUID) -> tuple[HoldPeriod, ...]:
    return tuple(
        HoldPeriod(row.user_id, row.since, row.until)
        for row in find_legal_holds(tenant_id, user_id)
    )


def _lock_tenant(tenant_id: TenantId) -> None:
    """Lock the tenant's row, so that a legal hold takes effect only between two steps."""
    Tenant.objects.select_for_update(no_key=True).get(id=tenant_id)


def _add_counts(row: Erasure, counts: dict[str, int]) -> None:
    """Add to the erasure's counts of rows, in the transaction that erases these rows."""
    old_counts = Erasure.objects.select_for_update().get(tenant_id=row.tenant_id, id=row.id).counts
    sums = {name: old_counts.get(name, 0) + num for name, num in counts.items() if num}
    Erasure.objects.filter(tenant_id=row.tenant_id, id=row.id).update(counts={**old_counts, **sums})
