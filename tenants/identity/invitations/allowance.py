"""Limits of the invitations that a tenant sends in 24 hours, in total and to one e-mail address.

Sending an invitation again creates another row, and a revoked invitation keeps its row. So the
number of rows is the number of e-mails. `require_allowance` is called with the tenant's row locked,
so that concurrent requests cannot exceed the limits.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil
from typing import Final

from django.conf import settings
from django.db.models import QuerySet

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import LimitReached
from tenants.base.permissions import Permission
from tenants.models import Invitation
from tenants.security.authorization.actor import Actor

_PERIOD: Final = timedelta(days=1)
_HOUR_S: Final = 3600


@dataclass(frozen=True, slots=True)
class InvitationAllowance:
    num_left: int  # invitations that can be sent now
    limit: int  # in 24 hours
    next_at: datetime | None  # when the next invitation can be sent; None: now


def get_allowance(*, actor: Actor, now: datetime) -> InvitationAllowance:
    """Return how many invitations the tenant can send. One or two queries. Raises Forbidden."""
    actor.require(Permission.WRITE_MEMBERS)
    limit = settings.MAX_INVITATIONS_A_DAY
    with tenant_scope(actor.tenant_id):
        sent_invitations = _filter_sent_invitations(actor.tenant_id, now)
        num_left = max(0, limit - sent_invitations.count())
        return InvitationAllowance(
            num_left, limit, None if num_left else _compute_free_at(sent_invitations, limit)
        )


def require_allowance(tenant_id: TenantId, email: str, now: datetime) -> None:
    """Check that the tenant can send one more invitation to the address. Raises LimitReached.

    Must run inside the tenant's scope, with the tenant's row locked.
    """
    sent_invitations = _filter_sent_invitations(tenant_id, now)
    limit = settings.MAX_INVITATIONS_A_DAY
    if sent_invitations.count() >= limit:
        wait_s, hours = _compute_wait(_compute_free_at(sent_invitations, limit), now)
        raise LimitReached(
            "Your tenant has sent {most} invitations in the last 24 hours, which "
            "is the limit. Try again in about {hours} h.",
            retry_after_s=wait_s,
            most=limit,
            hours=hours,
        )
    to_address = sent_invitations.filter(email=email)
    limit = settings.MAX_INVITATIONS_A_DAY_AND_ADDRESS
    if to_address.count() >= limit:
        wait_s, hours = _compute_wait(_compute_free_at(to_address, limit), now)
        raise LimitReached(
            "This address was sent {most} invitations in the last 24 hours, which is the "
            "limit. Try again in about {hours} h.",
            retry_after_s=wait_s,
            most=limit,
            hours=hours,
        )


def _filter_sent_invitations(tenant_id: TenantId, now: datetime) -> QuerySet[Invitation]:
    return Invitation.objects.filter(tenant_id=tenant_id, created_at__gt=now - _PERIOD)


def _compute_free_at(sent_invitations: QuerySet[Invitation], limit: int) -> datetime:
    """Return when one more invitation can be sent, if at least `limit` were sent in the period.

    It is the time at which the oldest of the newest `limit` invitations leaves the period.
    """
    times = sent_invitations.order_by("-created_at").values_list("created_at", flat=True)
    return list(times[:limit])[-1] + _PERIOD


def _compute_wait(free_at: datetime, now: datetime) -> tuple[int, int]:
    """Return the wait in seconds and in hours, both rounded up."""
    wait_s = max(1, ceil((free_at - now).total_seconds()))
    return wait_s, ceil(wait_s / _HOUR_S)
