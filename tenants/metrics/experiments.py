"""What variants of experiments have come to, side by side.

A person stays in his variant, so a variant is a group of people like others: too small a one is
suppressed. First tokens are measured from the requests' own records, of the last days.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Avg, Count, Q, StdDev

from caret.contracts.policy import Mode
from caret.contracts.usage import Finish
from caret.foundation.postgres.tenancy import tenant
from tenants.members.actor import Actor
from tenants.metrics.breakdown import break_down, rows_of
from tenants.metrics.intervals import Estimate, difference, mean_of, share_of
from tenants.metrics.reports import (
    Asked,
    GroupBy,
    Kind,
    Row,
    check,
    is_of_oneself,
    min_group_users,
    rolled,
)
from tenants.metrics.roll_up import complete_until
from tenants.models import UsageRecord
from tenants.usage.speed import MAX_EXACT

CONTROL: Final = "control"
# Fewer tell nothing, whatever their interval: about one in ten more or less.
MIN_SHOWN: Final = 400
_NAMES: Final = (
    *("requests", "shown", "accepted", "partly_accepted", "looked_at_30", "retained_30"),
)
_FINISHED: Final = Q(finish__in=[Finish.STOP, Finish.LENGTH], first_token_ms__isnull=False)


@dataclass(frozen=True, slots=True)
class Measured:
    """Or how far it is from the control's. None: nothing is known."""

    acceptance: Estimate | None
    persistence: Estimate | None  # after 30 s
    first_token_ms: Estimate | None  # of inline requests, on average


@dataclass(frozen=True, slots=True)
class VariantView:
    name: str  # within its experiment
    is_control: bool
    row: Row  # its people and counts; suppressed
    measured: Measured
    against_control: Measured

    @property
    def is_few(self) -> bool:
        return self.row.counts is not None and self.row.counts.shown < MIN_SHOWN


@dataclass(frozen=True, slots=True)
class ExperimentView:
    name: str
    control: str
    variants: list[VariantView]  # the control first


@dataclass(frozen=True, slots=True)
class Experiments:
    experiments: list[ExperimentView]
    first_tokens_since: datetime
    complete_until: datetime | None
    min_users: int


def read_experiments(*, actor: Actor, asked: Asked) -> Experiments:
    """By name. Raises Forbidden, Invalid. Four queries."""
    is_own = is_of_oneself(actor, Kind.QUALITY)
    check(asked)
    since = max(asked.begins_at, asked.ends_at - MAX_EXACT)
    with tenant(actor.tenant_id):
        rows = rolled(actor, asked, is_own=is_own).exclude(variant="")
        found = break_down(rows, asked, (GroupBy.VARIANT,), names=_NAMES)
        means = _first_tokens(actor, asked, since, is_own=is_own)
        min_users = 1 if is_own else min_group_users(actor)
        until = complete_until(actor.tenant_id)
    shown = rows_of(found.by.get(GroupBy.VARIANT, {}), min_users=min_users, whole=None)
    by_experiment: defaultdict[str, list[Row]] = defaultdict(list)
    for row in shown:
        by_experiment[row.key.rpartition("/")[0]].append(row)
    experiments = [_experiment(name, each, means) for name, each in sorted(by_experiment.items())]
    return Experiments(experiments, since, until, min_users)


def _first_tokens(
    actor: Actor, asked: Asked, since: datetime, *, is_own: bool
) -> dict[str, Estimate | None]:
    records = UsageRecord.objects.filter(
        _FINISHED,
        tenant_id=actor.tenant_id,
        occurred_at__gte=since,
        occurred_at__lt=asked.ends_at,
        mode=Mode.INLINE,
        variant__gt="",
    )
    if is_own:
        records = records.filter(user_id=actor.user_id)
    found = records.values("variant").annotate(
        mean=Avg("first_token_ms"),
        deviation=StdDev("first_token_ms", sample=True),
        num=Count("request_id"),
    )
    return {
        str(row["variant"]): mean_of(row["mean"], row["deviation"], row["num"]) for row in found
    }


def _experiment(
    name: str, rows: Iterable[Row], means: dict[str, Estimate | None]
) -> ExperimentView:
    by_name = {row.key.rpartition("/")[2]: row for row in rows}
    control = CONTROL if CONTROL in by_name else min(by_name)
    measured = {variant: _measured(row, means) for variant, row in by_name.items()}
    ordered = sorted(by_name, key=lambda variant: (variant != control, variant))
    return ExperimentView(
        name,
        control,
        [
            VariantView(
                variant,
                variant == control,
                by_name[variant],
                measured[variant],
                _against(measured[variant], measured[control], is_same=variant == control),
            )
            for variant in ordered
        ],
    )


def _measured(row: Row, means: dict[str, Any]) -> Measured:
    counts = row.counts
    if counts is None:
        return Measured(None, None, None)
    return Measured(
        share_of(counts.accepted + counts.partly_accepted, counts.shown),
        share_of(counts.retained_30, counts.looked_at_30),
        means.get(row.key),
    )


def _against(one: Measured, control: Measured, *, is_same: bool) -> Measured:
    if is_same:
        return Measured(None, None, None)
    return Measured(
        difference(one.acceptance, control.acceptance),
        difference(one.persistence, control.persistence),
        difference(one.first_token_ms, control.first_token_ms),
    )
