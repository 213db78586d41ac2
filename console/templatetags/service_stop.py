"""`{% service_stop member as stop %}`: the banner of a tenant without completions.

It says why the tenant gets no completions, or will soon get none. `stop` is None if no reason
applies.
"""

from dataclasses import dataclass
from datetime import date, datetime
from types import MappingProxyType
from typing import Final

from django import template
from django.urls import reverse
from django.utils import timezone

from console.sign_in.current_member import CurrentMember
from tenants.base.permissions import Permission
from tenants.identity.service_stop import StopReason, find_service_stop

register: Final = template.Library()
# For each reason, the page that helps and the permission that the page requires.
_PAGES: Final = MappingProxyType(
    {
        StopReason.SUSPENDED: ("console:audit", Permission.READ_AUDIT),
        StopReason.CLOSING: ("console:exports", Permission.EXPORT),
        StopReason.TRIAL_ENDED: ("console:exports", Permission.EXPORT),
        StopReason.TRIAL_ENDING: ("console:billing", Permission.READ_BILLING),
        StopReason.BUDGET: ("console:budgets", Permission.READ_BILLING),
    }
)


@dataclass(frozen=True, slots=True)
class _Banner:
    reason: str  # a StopReason
    since: datetime | None  # when the completions stopped; None: unknown, or a trial
    ends_on: date | None  # last day of the trial, or day of the closing; None: neither
    url: str  # of the page that helps; "": the member may not open it


@register.simple_tag
def service_stop(member: CurrentMember) -> _Banner | None:
    stop = find_service_stop(tenant=member.tenant, now=timezone.now())
    if stop is None:
        return None
    page, permission = _PAGES[stop.reason]
    url = reverse(page) if member.actor.has_permission(permission) else ""
    return _Banner(stop.reason.value, stop.since, stop.ends_on, url)
