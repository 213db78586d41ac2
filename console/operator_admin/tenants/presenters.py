"""Values of a tenant's page: data of its tables, and status changes.

The tables have the format of django-unfold's table component.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from caret.contracts.snapshot import TenantStatus
from tenants.fleet.operators.queries import KeyRow, TenantDetails


@dataclass(frozen=True, slots=True)
class StatusChange:
    current: TenantStatus
    target: TenantStatus
    label: Promise
    effect: Promise
    variant: str  # of the button
    is_final: bool = False  # nobody can undo it, so the page asks for the slug


_STATUS_CHANGES: Final = (
    StatusChange(
        TenantStatus.ACTIVE,
        TenantStatus.SUSPENDED,
        _("Suspend"),
        _("Gateways reject its API keys within a second. Members can still sign in."),
        "danger",
    ),
    StatusChange(
        TenantStatus.SUSPENDED,
        TenantStatus.ACTIVE,
        _("Resume"),
        _("Gateways accept its API keys again within a second."),
        "primary",
    ),
    StatusChange(
        TenantStatus.SUSPENDED,
        TenantStatus.CLOSING,
        _("Begin closing"),
        _("Members can only read, export and erase data. You can still stop this."),
        "danger",
    ),
    StatusChange(
        TenantStatus.CLOSING,
        TenantStatus.SUSPENDED,
        _("Stop closing"),
        _("The tenant is suspended again."),
        "primary",
    ),
    StatusChange(
        TenantStatus.CLOSING,
        TenantStatus.CLOSED,
        _("Close for good"),
        _("Nobody can sign in to the tenant any more. You cannot undo this."),
        "danger",
        is_final=True,
    ),
)


def list_status_changes(current: TenantStatus) -> list[StatusChange]:
    return [change for change in _STATUS_CHANGES if change.current is current]


def build_members_table(details: TenantDetails) -> dict[str, Any]:
    return {
        "headers": [gettext("Role"), gettext("Members")],
        "rows": [[role.value, count] for role, count in details.members.items()],
    }


def build_keys_table(details: TenantDetails) -> dict[str, Any]:
    return {
        "headers": [
            gettext("Key ID"),
            gettext("Kind"),
            gettext("Created"),
            gettext("Last used"),
            gettext("Ends"),
        ],
        "rows": [
            [
                key.lookup_id,
                key.kind.value,
                _format_moment(key.created_at),
                _format_last_use(key),
                _format_expiry(key),
            ]
            for key in details.keys
        ],
    }


def build_versions_table(details: TenantDetails) -> dict[str, Any]:
    return {
        "headers": [gettext("Version"), gettext("Active since (UTC)")],
        "rows": [
            [each.version, _format_moment(each.created_at)] for each in details.policy_versions
        ],
    }


def _format_last_use(key: KeyRow) -> str:
    return gettext("never") if key.last_used_at is None else _format_moment(key.last_used_at)


def _format_expiry(key: KeyRow) -> str:
    if key.revoked_at is not None:
        return gettext("revoked %(at)s") % {"at": _format_moment(key.revoked_at)}
    return gettext("never") if key.expires_at is None else _format_moment(key.expires_at)


def _format_moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"
