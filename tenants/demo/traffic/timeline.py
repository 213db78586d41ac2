"""The timeline of a demonstration: tenant, period and repeatable random numbers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from random import Random
from typing import Final

from caret.foundation.ids import TenantId
from tenants.security.authorization.actor import Actor, build_system_actor

_SATURDAY: Final = 5


@dataclass(frozen=True, slots=True)
class DemoTimeline:
    tenant_id: TenantId
    slug: str
    begins_at: datetime  # midnight UTC
    now: datetime
    seed: int

    @property
    def num_days(self) -> int:
        return (self.now - self.begins_at).days

    @property
    def platform(self) -> Actor:
        return build_system_actor(self.tenant_id)

    def moment_at(self, share: float, *, hour: int = 9, minute: int = 0) -> datetime:
        """Return a time on the day at this share of the period.

        A Saturday or Sunday is replaced by the Friday before, or by the first day of the period if
        that Friday is earlier.
        """
        day = self.begins_at + timedelta(days=int(share * self.num_days))
        return self._working_day(day).replace(hour=hour, minute=minute)

    def moment_before(self, days: int, *, hour: int = 9, minute: int = 0) -> datetime:
        """Return a time this many days before the period."""
        return self.begins_at - timedelta(days=days) + timedelta(hours=hour, minutes=minute)

    def make_random(self, purpose: str) -> Random:
        """Return a random generator: the same numbers for the same seed and purpose."""
        return Random(f"{self.seed}/{self.slug}/{purpose}")

    def _working_day(self, day: datetime) -> datetime:
        friday = day - timedelta(days=max(0, day.weekday() - _SATURDAY + 1))
        return max(friday, self.begins_at)


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    at: datetime
    do: Callable[[datetime], object]


def run_events(events: Iterable[TimelineEvent], *, until: datetime) -> None:
    """Run events in order of time, without those later than `until`."""
    for event in sorted(events, key=lambda event: event.at):
        if event.at <= until:
            event.do(event.at)


def get_midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.date(), time(), tzinfo=moment.tzinfo)
