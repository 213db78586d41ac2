"""Finds the rules of a policy that this installation cannot enforce now, or could not in the past.

Gateways report their capabilities. A worker records each change, so that pages and exports can say
when a rule was not enforced. Before the first report, every rule counts as enforced.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from caret.contracts.policy import TenantPolicy
from tenants.models import CapabilityChange

# `CapabilityChange.capability` contains a Capability, or this prefix and the name of a region. A
# region is available if it has a gateway.
REGION_PREFIX: Final = "region:"


class Capability(StrEnum):
    PUBLIC_CODE_FILTER = "public_code_filter"  # an index of public code is loaded
    RETRIEVAL = "retrieval"  # files are indexed
    EXPERIMENTS = "experiments"  # an experiment is configured


@dataclass(frozen=True, slots=True)
class Capabilities:
    missing: frozenset[Capability]  # reported as unavailable
    regions: tuple[str, ...]  # with a gateway, sorted; empty: unknown


@dataclass(frozen=True, slots=True)
class UnavailablePeriod:
    """A half-open period in which a capability was not available."""

    starts_at: datetime
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class _Requirement:
    """The capability that the installation needs to enforce a field of a policy."""

    capability: Capability
    is_set: Callable[[TenantPolicy], bool]  # whether the policy uses the field


# By field of the policy. Capability.EXPERIMENTS is not here: a policy can only allow or forbid
# experiments, and without an experiment there is nothing to forbid.
_REQUIREMENTS: Final = MappingProxyType(
    {
        "has_public_code_filter": _Requirement(
            Capability.PUBLIC_CODE_FILTER, lambda policy: policy.has_public_code_filter
        ),
        "retrieval": _Requirement(Capability.RETRIEVAL, lambda policy: bool(policy.retrieval)),
    }
)


def read_capabilities() -> Capabilities:
    """Return the capabilities of the gateways at their last report. One query."""
    newest = CapabilityChange.objects.order_by("capability", "-since").distinct("capability")
    is_available_by_name = dict(newest.values_list("capability", "is_available"))
    return Capabilities(
        missing=frozenset(
            capability for capability in Capability if is_available_by_name.get(capability) is False
        ),
        regions=tuple(
            sorted(
                name.removeprefix(REGION_PREFIX)
                for name, is_available in is_available_by_name.items()
                if is_available and name.startswith(REGION_PREFIX)
            )
        ),
    )


def find_unenforced(policy: TenantPolicy, capabilities: Capabilities) -> list[str]:
    """Return the fields of the policy that are set but cannot be enforced now. Pure."""
    return [
        field
        for field, requirement in _REQUIREMENTS.items()
        if requirement.capability in capabilities.missing and requirement.is_set(policy)
    ]


def read_history() -> dict[str, list[UnavailablePeriod]]:
    """Return for each field the periods in which it could not be enforced. One query.

    A period that has not ended yet gets the latest possible time as its end.
    """
    rows = CapabilityChange.objects.order_by("since").values_list(
        "capability", "is_available", "since"
    )
    by_capability: dict[str, list[tuple[bool, datetime]]] = {}
    for capability, is_available, since in rows:
        by_capability.setdefault(capability, []).append((is_available, since))
    return {
        field: find_unavailable_periods(by_capability.get(requirement.capability, []))
        for field, requirement in _REQUIREMENTS.items()
    }


def find_unavailable_periods(
    changes: Iterable[tuple[bool, datetime]],
) -> list[UnavailablePeriod]:
    """Return the periods in which a capability was unavailable. Pure.

    Each change is a pair: whether the capability is available, and since when. `changes` are sorted
    by time.
    """
    periods: list[UnavailablePeriod] = []
    starts_at: datetime | None = None
    for is_available, since in changes:
        if not is_available and starts_at is None:
            starts_at = since
        elif is_available and starts_at is not None:
            periods.append(UnavailablePeriod(starts_at, since))
            starts_at = None
    if starts_at is not None:
        periods.append(UnavailablePeriod(starts_at, datetime.max.replace(tzinfo=starts_at.tzinfo)))
    return periods


def find_unenforced_periods(
    policy: TenantPolicy,
    history: dict[str, list[UnavailablePeriod]],
    *,
    starts_at: datetime,
    ends_at: datetime,
) -> dict[str, list[UnavailablePeriod]]:
    """Return for each set field of the policy the periods in which it was not enforced. Pure.

    The policy was in force from `starts_at` to `ends_at`. `history` is the result of read_history.
    Fields that were always enforced are left out.
    """
    periods_by_field: dict[str, list[UnavailablePeriod]] = {}
    for field, requirement in _REQUIREMENTS.items():
        if not requirement.is_set(policy):
            continue
        clipped = (
            UnavailablePeriod(max(period.starts_at, starts_at), min(period.ends_at, ends_at))
            for period in history.get(field, ())
        )
        if periods := [period for period in clipped if period.starts_at < period.ends_at]:
            periods_by_field[field] = periods
    return periods_by_field
