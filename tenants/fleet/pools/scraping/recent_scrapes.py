"""The gateways' counts of about the last 15 minutes, so that pages can show recent values.

Gateways only report counts since their start. So a task stores a scrape of all gateways in Redis
each minute, and the counts of the oldest one are subtracted from the current counts. If Redis loses
the scrapes, pages show counts since the start until there are new scrapes.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, cast

import msgspec
import redis

from tenants.fleet.pools.scraping.gateway_scraper import Scrape
from tenants.fleet.pools.scraping.metric_samples import (
    Labels,
    MetricSamples,
    compute_counter_increase,
    merge_samples,
)

KEY: Final = "caret:gateways:scrapes"  # a Redis list, newest scrape first
WINDOW_S: Final = 900
KEEP_S: Final = 2 * WINDOW_S  # older scrapes are not used, for example after an outage of the task
EVERY_S: Final = 60  # interval of the task
_OLDEST_INDEX: Final = WINDOW_S // EVERY_S
_COUNTER_SUFFIXES: Final = ("_total", "_bucket")


class _StoredScrape(msgspec.Struct, frozen=True, array_like=True):
    at_s: float  # Unix time
    # By gateway: name, labels and value of each sample.
    gateways: dict[str, list[tuple[str, Labels, float]]]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_StoredScrape).decode


@dataclass(frozen=True, slots=True)
class RecentScrapes:
    counters: MetricSamples  # of all gateways, in the window
    # Length of the window; None: since each gateway's start, because there is no usable scrape.
    window_s: float | None


def store_scrapes(connection: redis.Redis, scrapes: Iterable[Scrape], *, now_s: float) -> None:
    """Store the counters of a scrape of all gateways. Raises redis.RedisError."""
    counters_by_gateway = {
        scrape.gateway: _select_counters(scrape.samples)
        for scrape in scrapes
        if scrape.samples is not None
    }
    pipeline = connection.pipeline(transaction=True)
    pipeline.lpush(KEY, _encode(_StoredScrape(now_s, counters_by_gateway)))
    pipeline.ltrim(KEY, 0, _OLDEST_INDEX)
    pipeline.expire(KEY, KEEP_S)
    pipeline.execute()


def count_recent(
    connection: redis.Redis, scrapes: Iterable[Scrape], *, now_s: float
) -> RecentScrapes:
    """Return the counts since the oldest stored scrape.

    Return the counts since the gateways' start if the oldest scrape is missing, unreadable, older
    than KEEP_S, or not from the past.
    """
    successful = [scrape for scrape in scrapes if scrape.samples is not None]
    oldest = _read_oldest(connection)
    if oldest is None or not 0 < now_s - oldest.at_s <= KEEP_S:
        return RecentScrapes(merge_samples(_collect_samples(successful)), None)
    increases = [
        increase
        for scrape in successful
        if (increase := _compute_increase(oldest, scrape)) is not None
    ]
    return RecentScrapes(merge_samples(increases), now_s - oldest.at_s)


def _collect_samples(successful: Iterable[Scrape]) -> list[MetricSamples]:
    return [scrape.samples for scrape in successful if scrape.samples is not None]


def _compute_increase(oldest: _StoredScrape, scrape: Scrape) -> MetricSamples | None:
    """Return the increase of a gateway's counters since `oldest`.

    None: the increase is unknown, because the gateway ran at that time but was not scraped.
    """
    assert scrape.samples is not None
    before = oldest.gateways.get(scrape.gateway)
    if before is not None:
        return compute_counter_increase(_to_samples(before), scrape.samples)
    # The gateway is not in `oldest`. If it started later, all of its counts are newer.
    started_s = scrape.samples.started_s
    return scrape.samples if started_s is not None and started_s >= oldest.at_s else None


def _read_oldest(connection: redis.Redis) -> _StoredScrape | None:
    """Return the oldest stored scrape; None: missing, unreadable, or Redis does not answer."""
    try:
        data = cast(Any, connection.lindex(KEY, -1))
    except redis.RedisError:
        return None
    try:
        return _decode(data) if data else None
    except (msgspec.DecodeError, UnicodeDecodeError):  # written by another version
        return None


def _select_counters(samples: MetricSamples) -> list[tuple[str, Labels, float]]:
    return [
        (name, labels, value)
        for name, values in samples.series.items()
        if name.startswith("caret_") and name.endswith(_COUNTER_SUFFIXES)
        for labels, value in values.items()
    ]


def _to_samples(counters: Iterable[tuple[str, Labels, float]]) -> MetricSamples:
    series: dict[str, dict[Labels, float]] = {}
    for name, labels, value in counters:
        if not math.isfinite(value):  # not written by this module
            continue
        series.setdefault(name, {})[tuple(labels)] = value
    return MetricSamples(series)
