"""Values of a tenant's page: its tables, the pools to choose from, and the status changes.

The tables have the format of the component unfold/components/table.html. `number_columns` has the
indexes of the columns with numbers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from caret.contracts.policy import Tier
from caret.contracts.snapshot import TenantStatus
from console.texts.labels import KEY_KIND_LABELS, ROLE_LABELS
from tenants.fleet.operators.queries import KeyRow, TenantDetails
from tenants.fleet.pools.assignments import PoolSharing, read_known_pools


@dataclass(frozen=True, slots=True)
class PoolChoice:
    """The choice of a pool of one tier."""

    tier: Tier
    pools: list[tuple[str, bool]]  # name, and whether it is chosen


def build_pool_choices(selected_names: Iterable[str]) -> list[PoolChoice]:
    """Return the assignable pools of each tier; empty if no gateway reports such a pool."""
    names = frozenset(selected_names)
    assignable_pools = [
        pool for pool in read_known_pools().values() if pool.sharing is not PoolSharing.DEDICATED
    ]
    return [
        PoolChoice(
            tier,
            [(pool.name, pool.name in names) for pool in assignable_pools if pool.tier == tier],
        )
        for tier in sorted({pool.tier for pool in assignable_pools})
    ]


@dataclass(frozen=True, slots=True)
class StatusChange:
    """A change of the status that operators can make."""

    current: TenantStatus
    target: TenantStatus
    label: Promise  # of the button
    effect: Promise  # the consequences, as sentences
    variant: str  # style of the button: primary or danger
    has_grace_period: bool = False  # True: the form asks for the days of the grace period
    is_final: bool = False  # True: it cannot be undone, so the form asks for the tenant's slug


_CLOSING_EFFECT: Final = _(
    "Stops completions and changes, and creates a final export for the owners. After the "
    "grace period, all data is deleted, and you get a deletion certificate. Until then, you "
    "can cancel the closing."
)
_STATUS_CHANGES: Final = (
    StatusChange(
        TenantStatus.ACTIVE,
        TenantStatus.SUSPENDED,
        _("Suspend"),
        _("Gateways reject the tenant’s API keys within a second. Members can still sign in."),
        "danger",
    ),
    StatusChange(
        TenantStatus.ACTIVE,
        TenantStatus.CLOSING,
        _("Close the tenant"),
        _CLOSING_EFFECT,
        "danger",
        has_grace_period=True,
    ),
    StatusChange(
        TenantStatus.SUSPENDED,
        TenantStatus.ACTIVE,
        _("Resume"),
        _("Gateways accept the tenant’s API keys again within a second."),
        "primary",
    ),
    StatusChange(
        TenantStatus.SUSPENDED,
        TenantStatus.CLOSING,
        _("Close the tenant"),
        _CLOSING_EFFECT,
        "danger",
        has_grace_period=True,
    ),
    StatusChange(
        TenantStatus.CLOSING,
        TenantStatus.ACTIVE,
        _("Cancel the closing and resume"),
        _("No data is deleted. Gateways accept the tenant’s API keys again within a second."),
        "primary",
    ),
    StatusChange(
        TenantStatus.CLOSING,
        TenantStatus.SUSPENDED,
        _("Cancel the closing and suspend"),
        _("No data is deleted. Gateways still reject the tenant’s API keys."),
        "primary",
    ),
    StatusChange(
        TenantStatus.CLOSING,
        TenantStatus.CLOSED,
        _("Close now"),
        _(
            "Ends the grace period. Nobody can sign in to the tenant any more, and all its "
            "data is deleted. You cannot undo this."
        ),
        "danger",
        is_final=True,
    ),
)


def list_status_changes(current: TenantStatus) -> list[StatusChange]:
    return [change for change in _STATUS_CHANGES if change.current is current]


def build_members_table(details: TenantDetails) -> dict[str, Any]:
    return {
        "headers": [gettext("Role"), gettext("Members")],
        "number_columns": [1],
        "rows": [[ROLE_LABELS[role], count] for role, count in details.members.items()],
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
                KEY_KIND_LABELS[key.kind],
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
            [version.version, _format_moment(version.created_at)]
            for version in details.policy_versions
        ],
    }


def _format_last_use(key: KeyRow) -> str:
    return gettext("never") if key.last_used_at is None else _format_moment(key.last_used_at)


def _format_expiry(key: KeyRow) -> str:
    if key.revoked_at is not None:
        return gettext("revoked %(at)s") % {"at": _format_moment(key.revoked_at)}
    return gettext("never") if key.expires_at is None else _format_moment(key.expires_at)


def _format_moment(at: datetime) -> str:
    """Return date and time, in UTC like all times of the operators' pages."""
    return f"{at:%Y-%m-%d %H:%M}"
