"""Trials: a tenant gets completions until the last day of its trial (UTC).

Gateways read the end of the trial in the snapshot, so no process has to run at that moment. Owners
are reminded by e-mail, and a banner in the console says when the trial ends.
"""

from datetime import date, datetime
from typing import Final

from django.conf import settings
from django.db.models import Q

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import ONE_DAY, start_of_day, utc_day
from tenants.base.errors import InvalidValue
from tenants.base.validation.text import parse_reason
from tenants.base.validation.time_bounds import validate_date
from tenants.identity.members.status_mail import mail_owners
from tenants.models import Tenant
from tenants.policy.snapshot_version import mark_snapshot_stale
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor

# Owners get e-mails this number of days before the last day of the trial; 0: after the last day.
REMINDER_DAYS: Final = (7, 1, 0)
_ENDING_TEXT: Final = (
    "Editors get completions until the end of that day (UTC). Your data and settings stay.\n"
    "To continue after that, contact the operator of your Caret installation.\n\n{console}"
)
_ENDED_TEXT: Final = (
    "Editors get no completions any more. Members can still sign in, and your data and settings "
    "stay.\nTo continue, contact the operator of your Caret installation.\n\n{console}"
)


def set_trial_end(*, actor: Actor, ends_on: date | None, reason: str, now: datetime) -> None:
    """Set the last day of the trial; None: the tenant has no trial any more.

    Raises Forbidden, InvalidValue.
    """
    actor.require_operator()
    reason = parse_reason(reason)
    if ends_on is not None:
        _check_trial_end(ends_on, now)
    with tenant_scope(actor.tenant_id):
        mark_snapshot_stale(tenant_id=actor.tenant_id)  # locks the tenant
        row = Tenant.objects.get(id=actor.tenant_id)
        Tenant.objects.filter(id=actor.tenant_id).update(
            trial_ends_on=ends_on, trial_reminder_days=None
        )
        record_change(
            actor=actor,
            action="tenant.trial_changed",
            target=f"tenant:{row.slug}",
            change=(
                {"trial_ends_on": _to_text(row.trial_ends_on)},
                {"trial_ends_on": _to_text(ends_on)},
            ),
            reason=reason,
            now=now,
        )


def compute_trial_end(ends_on: date) -> datetime:
    """Return the time when a trial ends: the midnight (UTC) at the end of its last day."""
    return start_of_day(ends_on + ONE_DAY)


def send_due_reminders(*, now: datetime) -> int:
    """Mail the owners of active tenants whose trial ends soon or has ended.

    Return the number of tenants that were reminded. Each reminder is sent at most once:
    `mail_owners` only logs a failed e-mail. If several reminders are due, only the latest one is
    sent. One query if there are no such tenants.
    """
    today = utc_day(now)
    ending = Tenant.objects.filter(
        status=TenantStatus.ACTIVE, trial_ends_on__lte=today + max(REMINDER_DAYS) * ONE_DAY
    ).exclude(trial_reminder_days=min(REMINDER_DAYS))  # the last reminder was sent
    num_sent = 0
    for row in ending.order_by("trial_ends_on", "id"):
        assert row.trial_ends_on is not None, "the query chooses trials"
        num_sent += _send_reminder(row, _choose_reminder((row.trial_ends_on - today).days))
    return num_sent


def _choose_reminder(days_left: int) -> int:
    """Return the reminder of REMINDER_DAYS that is due.

    `days_left` is 0 on the last day of the trial, and negative after it.
    """
    if days_left < 0:
        return 0
    # On the last day, reminder 1 is still due: reminder 0 is sent only after that day.
    return min(days for days in REMINDER_DAYS if days >= max(days_left, 1))


def _send_reminder(row: Tenant, days: int) -> bool:
    """Send the reminder, unless it was sent before. Return whether it is sent."""
    tenant_id = TenantId(str(row.id))
    with tenant_scope(tenant_id):
        unsent = Tenant.objects.filter(
            Q(trial_reminder_days=None) | Q(trial_reminder_days__gt=days),
            id=row.id,
            trial_ends_on=row.trial_ends_on,
        )
        if not unsent.update(trial_reminder_days=days):
            return False
        verb, text = ("ended", _ENDED_TEXT) if days == 0 else ("ends", _ENDING_TEXT)
        mail_owners(
            tenant_id=tenant_id,
            subject=f"The trial of {row.name} {verb} on {row.trial_ends_on}",
            text=text.format(console=settings.CONSOLE_URL),
        )
    return True


def _check_trial_end(ends_on: date, now: datetime) -> None:
    """Check the last day. Raises InvalidValue."""
    validate_date("trial_ends_on", ends_on)
    if ends_on <= utc_day(now):
        raise InvalidValue("trial_ends_on", "Choose a day after today (UTC).")


def _to_text(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
