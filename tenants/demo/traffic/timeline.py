"""The timeline of a demonstration: tenant, period and repeatable random numbers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from random import Random
from typing import Final

from caret.foundation.ids import TenantId
from tenants.security.authorization.actor import Actor, build_system_actor

_SATURDAY: Final = 5  # as datetime.weekday numbers it


@dataclass(frozen=True, slots=True)
class DemoTimeline:
    tenant_id: TenantId
    slug: str  # of the tenant
    begins_at: datetime  # beginning of the period, at midnight UTC
    now: datetime  # end of the period
    seed: int  # of the random numbers

    @property
    def num_days(self) -> int:
        """The number of full days in the period."""
        return (self.now - self.begins_at).days

    @property
    def platform(self) -> Actor:
        """The platform itself, as an actor."""
        return build_system_actor(self.tenant_id)

    def moment_at(self, share: float, *, hour: int = 9, minute: int = 0) -> datetime:
        """Return a time on the day at this share of the period, in UTC. `share` is from 0 to 1.

        A Saturday or Sunday is replaced by the Friday before. If that Friday is before the period,
        the first day of the period replaces it.
        """
        day = self.begins_at + timedelta(days=int(share * self.num_days))
        return self._move_to_working_day(day).replace(hour=hour, minute=minute)

    def moment_before(self, days: int, *, hour: int = 9, minute: int = 0) -> datetime:
        """Return a time on the day that is `days` days before the first day, in UTC."""
        return self.begins_at - timedelta(days=days) + timedelta(hours=hour, minutes=minute)

    def make_random(self, purpose: str) -> Random:
        """Return a random generator. The same seed, tenant and purpose give the same numbers."""
        return Random(f"{self.seed}/{self.slug}/{purpose}")

    def _move_to_working_day(self, day: datetime) -> datetime:
        working_day = day - timedelta(days=max(0, day.weekday() - _SATURDAY + 1))
        return max(working_day, self.begins_at)


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    at: datetime
    do: Callable[[datetime], object]  # called with `at`


def run_events(events: Iterable[TimelineEvent], *, until: datetime) -> None:
    """Run the events up to `until` in order of time, and skip the later ones.

    Events of the same time keep their order.
    """
    for event in sorted(events, key=lambda event: event.at):
        if event.at <= until:
            event.do(event.at)


def get_midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.date(), time(), tzinfo=moment.tzinfo)
