"""How quick completions were, by kind of request, and how busy their engines: from the requests'
own records, exactly. Percentiles do not add up, so no roll-up has them; the time is bounded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.postgres.fields import ArrayField
from django.db.models import (
    Aggregate,
    BooleanField,
    Count,
    ExpressionWrapper,
    F,
    FloatField,
    Q,
    QuerySet,
    Sum,
)

from caret.contracts.policy import Mode
from caret.contracts.targets import FIRST_TOKEN_MS
from caret.contracts.usage import Finish
from tenants.models import UsageRecord

# Of a longer period its last days: all of a quarter's records take seconds to sort.
MAX_EXACT: Final = timedelta(days=7)
_FINISHED: Final = Q(finish__in=[Finish.STOP, Finish.LENGTH], first_token_ms__isnull=False)


@dataclass(frozen=True, slots=True)
class Speed:
    mode: Mode
    completed: int
    p50_ms: float | None  # None: nothing was completed
    p99_ms: float | None
    at_replica: int  # requests that were there already, of all `sent` together
    sent: int  # to an engine

    @property
    def target_ms(self) -> float:
        return FIRST_TOKEN_MS[self.mode]

    @property
    def is_kept(self) -> bool:
        return self.p99_ms is not None and self.p99_ms < self.target_ms


@dataclass(frozen=True, slots=True)
class Speeds:
    since: (
        datetime  # what is measured begins here, later than what was asked about where that is long
    )
    now: Mapping[Mode, Speed]
    before: Mapping[Mode, Speed]  # of the time before it, as long

    @property
    def load(self) -> float | None:
        """Requests of the same gateway at a replica when another one comes there, on average."""
        return _load(self.now)

    @property
    def load_before(self) -> float | None:
        return _load(self.before)


class _Percentiles(Aggregate):
    function = "percentile_cont"
    template = "%(function)s(array[0.5, 0.99]) WITHIN GROUP (ORDER BY %(expressions)s)"
    output_field = ArrayField(FloatField())


def read_speeds(
    records: QuerySet[UsageRecord], *, begins_at: datetime, ends_at: datetime
) -> Speeds:
    """Inside the tenant's scope. One query over the primary key."""
    since = max(begins_at, ends_at - MAX_EXACT)
    found: dict[bool, dict[Mode, Speed]] = {True: {}, False: {}}
    for row in _measured(records, since, ends_at):
        mode = Mode(row["mode"])
        found[row["is_now"]][mode] = _speed(mode, row)
    return Speeds(since, found[True], found[False])


def _measured(
    records: QuerySet[UsageRecord], since: datetime, ends_at: datetime
) -> Iterable[Mapping[str, Any]]:
    is_now = ExpressionWrapper(Q(occurred_at__gte=since), output_field=BooleanField())
    return (
        records.filter(occurred_at__gte=since - (ends_at - since), occurred_at__lt=ends_at)
        .annotate(is_now=is_now)
        .values("is_now", "mode")
        .annotate(
            completed=Count("request_id", filter=_FINISHED),
            percentiles=_Percentiles("first_token_ms", filter=_FINISHED),
            at_replica=Sum(F("num_at_replica"), default=0),
            sent=Count("num_at_replica"),
        )
        .order_by()
    )


def _speed(mode: Mode, row: Mapping[str, Any]) -> Speed:
    p50_ms, p99_ms = row["percentiles"] or (None, None)
    return Speed(mode, row["completed"], p50_ms, p99_ms, row["at_replica"], row["sent"])


def _load(speeds: Mapping[Mode, Speed]) -> float | None:
    sent = sum(speed.sent for speed in speeds.values())
    return sum(speed.at_replica for speed in speeds.values()) / sent if sent else None
