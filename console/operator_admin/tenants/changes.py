"""The changes that operators can make on a tenant's page: their forms and texts.

Each form is read and applied by one function.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import Final

from django.http import QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from caret.contracts.snapshot import TenantStatus
from tenants.base.errors import InvalidValue
from tenants.fleet.operators import operations
from tenants.fleet.operators.queries import find_in_directory
from tenants.fleet.snapshots.platform_limits import PlatformLimits
from tenants.security.authorization.actor import Actor

_MAX_COUNT_DIGITS: Final = 9  # such a number fits an integer column of Postgres


@dataclass(frozen=True, slots=True)
class TenantChangeForm:
    confirmation: Promise  # a question with the placeholder %(tenant)s for the tenant's name
    done: Promise  # the message after the change
    # Applies the form. Raises DomainError.
    apply: Callable[[QueryDict, Actor, datetime], None]


def read_optional_date(name: str, form: QueryDict) -> date | None:
    """Return the date in the field `name`; None if it is empty. Raises InvalidValue."""
    return _read_date(name, form) if form.get(name, "").strip() else None


def _change_name(form: QueryDict, actor: Actor, now: datetime) -> None:
    operations.change_name(
        actor=actor, name=form.get("name", ""), reason=_read_reason(form), now=now
    )


def _change_status(form: QueryDict, actor: Actor, now: datetime) -> None:
    status = _read_status(form.get("status", ""))
    slug = find_in_directory(actor.tenant_id).slug
    if status is TenantStatus.CLOSED and form.get("slug", "").strip() != slug:
        raise InvalidValue("slug", "To close the tenant, enter its slug: {slug}.", slug=slug)
    operations.change_status(
        actor=actor,
        status=status,
        reason=_read_reason(form),
        now=now,
        grace_days=_read_count("grace_days", form),
    )


def _change_plan(form: QueryDict, actor: Actor, now: datetime) -> None:
    starts_on = _read_date("starts_on", form)
    operations.change_plan(
        actor=actor,
        plan=form.get("plan", ""),
        starts_on=starts_on,
        reason=_read_reason(form),
        now=now,
    )


def _change_trial(form: QueryDict, actor: Actor, now: datetime) -> None:
    ends_on = read_optional_date("trial_ends_on", form)
    operations.change_trial(actor=actor, ends_on=ends_on, reason=_read_reason(form), now=now)


def _appoint_owner(form: QueryDict, actor: Actor, now: datetime) -> None:
    operations.appoint_owner(
        actor=actor, email=form.get("email", ""), reason=_read_reason(form), now=now
    )


def _change_region(form: QueryDict, actor: Actor, now: datetime) -> None:
    region = form.get("region", "")
    operations.change_region(actor=actor, region=region, reason=_read_reason(form), now=now)


def _change_limits(form: QueryDict, actor: Actor, now: datetime) -> None:
    platform_limits = PlatformLimits(
        _read_count("max_concurrent_completions", form),
        _read_count("max_requests_per_minute", form),
    )
    operations.change_limits(
        actor=actor, platform_limits=platform_limits, reason=_read_reason(form), now=now
    )


def _read_reason(form: QueryDict) -> str:
    return str(form.get("reason", ""))


def _read_status(text: str) -> TenantStatus:
    """Return the status. Raises InvalidValue."""
    try:
        return TenantStatus(text)
    except ValueError as error:
        raise InvalidValue("status", "Choose one of these statuses.") from error


def _read_date(name: str, form: QueryDict) -> date:
    """Return the date in the field `name`. Raises InvalidValue."""
    try:
        return date.fromisoformat(form.get(name, ""))
    except ValueError as error:
        raise InvalidValue(name, "Enter a date such as 2026-01-31.") from error


def _read_count(name: str, form: QueryDict) -> int | None:
    """Return the whole number in the field `name`; None if it is empty. Raises InvalidValue."""
    text = form.get(name, "").strip()
    if not text:
        return None
    # Only ASCII digits: isdigit alone accepts "²", for which int fails.
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_COUNT_DIGITS):
        raise InvalidValue(name, "Enter a whole number, or leave empty.")
    return int(text)


# By the last part of the form's URL.
CHANGE_FORMS: Final = MappingProxyType(
    {
        "name": TenantChangeForm(
            _("Change the name of %(tenant)s?"), _("Name changed."), _change_name
        ),
        "status": TenantChangeForm(
            _("Change the status of %(tenant)s?"),
            _("Status changed. Gateways apply it within a second."),
            _change_status,
        ),
        "plan": TenantChangeForm(
            _("Change the plan of %(tenant)s?"), _("Plan changed."), _change_plan
        ),
        "trial": TenantChangeForm(
            _("Change the trial of %(tenant)s?"),
            _("Trial changed. Gateways apply it within a second."),
            _change_trial,
        ),
        "owner": TenantChangeForm(
            _("Make a member of %(tenant)s an owner?"),
            _("The member is now an owner. We sent all owners an e-mail."),
            _appoint_owner,
        ),
        "region": TenantChangeForm(
            _("Change the region of %(tenant)s?"), _("Region changed."), _change_region
        ),
        "limits": TenantChangeForm(
            _("Change the limits of %(tenant)s?"),
            _("Limits changed. Gateways apply them within a second."),
            _change_limits,
        ),
    }
)
# The labels of the forms' fields, on the page that asks for a code.
FIELD_NAMES: Final = MappingProxyType(
    {
        "name": _("Name"),
        "status": _("Status"),
        "grace_days": _("Grace period in days"),
        "plan": _("Plan"),
        "starts_on": _("From"),
        "trial_ends_on": _("Last day of the trial"),
        "email": _("E-mail"),
        "region": _("Region"),
        "max_concurrent_completions": _("Concurrent completions per gateway"),
        "max_requests_per_minute": _("Requests per minute, all gateways"),
        "slug": _("Slug"),
        "reason": _("Your reason"),
    }
)
