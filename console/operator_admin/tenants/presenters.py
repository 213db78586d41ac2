"""Tables of a tenant's page, in the format of unfold's component, and the choice of pools."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext

from tenants.fleet.operators.queries import KeyRow, TenantDetails
from tenants.fleet.pools.assignment import list_pools


@dataclass(frozen=True, slots=True)
class PoolChoice:
    """The pools of one tier, to choose one from."""

    tier: str
    pools: list[tuple[str, bool]]  # name, and whether it is chosen


def pool_choices(chosen: Iterable[str]) -> list[PoolChoice]:
    """Return the known pools of each tier; empty if no gateway responds."""
    known, names = list_pools(), frozenset(chosen)
    return [
        PoolChoice(tier, [(name, name in names) for name, its in known.items() if its == tier])
        for tier in sorted(set(known.values()))
    ]


def members_table(details: TenantDetails) -> dict[str, Any]:
    return {
        "headers": [gettext("Role"), gettext("Members")],
        "rows": [[role.value, count] for role, count in details.members.items()],
    }


def keys_table(details: TenantDetails) -> dict[str, Any]:
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


def versions_table(details: TenantDetails) -> dict[str, Any]:
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
