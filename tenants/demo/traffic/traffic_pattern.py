"""Traffic patterns: when developers work, and how the load changes over the period. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Final

_SATURDAY: Final = 5  # as datetime.weekday numbers it
# Relative number of requests in each hour of a working day, with a lunch break in the fifth hour.
_HOUR_WEIGHTS: Final = (6, 10, 12, 11, 5, 8, 12, 11, 9, 5, 2, 1)
_WEEKEND_FACTOR: Final = 0.06  # requests on a Saturday or Sunday, per request on a working day
_OVERLOADED_DAY: Final = 0.72  # as a share of the period
_OVERLOADED_HOURS: Final = (2, 5)  # beginning and end, in hours after the working day begins


@dataclass(frozen=True, slots=True)
class TrafficLevel:
    """Properties of the requests at a time of the period."""

    elapsed_share: float  # the share of the period that is over, 0 to 1
    is_overloaded: bool  # engines are overloaded

    @property
    def slowness(self) -> float:
        """The factor of the engines' latencies. It is high under overload, and falls over time."""
        return (7.0 if self.is_overloaded else 1.0) * (1.25 - 0.35 * self.elapsed_share)

    @property
    def hit_rate(self) -> float:
        """The share of prompt tokens in the prefix cache. It is low under overload, and grows."""
        return 0.25 if self.is_overloaded else 0.58 + 0.36 * min(1.0, self.elapsed_share * 1.4)


@dataclass(frozen=True, slots=True)
class TrafficCalendar:
    begins_at: datetime  # beginning of the period, at midnight UTC
    now: datetime  # end of the period
    opens_at: int  # the UTC hour at which the working day begins

    def list_days(self) -> Iterator[datetime]:
        """Yield the midnight (UTC) at which each day of the period begins, including today."""
        day = self.begins_at
        while day <= self.now:
            yield day
            day += timedelta(days=1)

    def level_at(self, moment: datetime) -> TrafficLevel:
        day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        first, end = _OVERLOADED_HOURS
        is_overloaded = (
            day == self.find_overloaded_day() and first <= moment.hour - self.opens_at < end
        )
        share = (moment - self.begins_at) / max(self.now - self.begins_at, timedelta(days=1))
        return TrafficLevel(min(1.0, share), is_overloaded)

    def find_overloaded_day(self) -> datetime:
        """Return the working day on which engines are overloaded.

        A Saturday or Sunday is replaced by the Friday before.
        """
        day = self.begins_at + timedelta(
            days=int(_OVERLOADED_DAY * (self.now - self.begins_at).days)
        )
        return day - timedelta(days=max(0, day.weekday() - _SATURDAY + 1))

    def draw_moments(self, day: datetime, pace: float, random: Random) -> list[datetime]:
        """Return the sorted times of a user's requests on a day, without times after `now`.

        `pace` is the mean number of requests on a working day.
        """
        is_weekend = day.weekday() >= _SATURDAY
        num = _draw_count(pace * (_WEEKEND_FACTOR if is_weekend else 1.0), random)
        hours = random.choices(range(len(_HOUR_WEIGHTS)), weights=_HOUR_WEIGHTS, k=num)
        moments = (
            day + timedelta(hours=self.opens_at + hour, seconds=round(random.uniform(0, 3_599), 3))
            for hour in hours
        )
        return sorted(moment for moment in moments if moment <= self.now)


def _draw_count(mean: float, random: Random) -> int:
    """Return a normally distributed number, at least 0. Its deviation is 30% of the mean."""
    return max(0, round(random.gauss(mean, mean * 0.3)))
