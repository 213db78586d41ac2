"""The console scrapes the metrics of gateways, and limits the time and size of each response.

From stored scrapes, it computes the counts of the last 15 minutes.
"""

import itertools
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from pytest_django import Settings

from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.pools.scraping import gateway_scraper
from tenants.fleet.pools.scraping.gateway_scraper import BOUNDS, Scrape, scrape_gateways
from tenants.fleet.pools.scraping.metric_samples import parse_metrics
from tenants.fleet.pools.scraping.recent_scrapes import KEY, WINDOW_S, count_recent, store_scrapes
from tenants.fleet.pools.scraping.slow_requests import list_slow_requests
from tests.fakes.raw_server import raw_server

NOW_S = 1_800_000_000.0
HEAD = b"HTTP/1.1 200 OK\r\n\r\n"
GOOD = HEAD + b'caret_completions_total{mode="fim"} 3.0\n'


def _trickling_body() -> Iterable[bytes]:
    yield HEAD
    while True:
        time.sleep(0.05)
        yield b"#"


def _endless_head() -> Iterable[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    for number in itertools.count():
        time.sleep(0.05)
        yield b"x-%d: y\r\n" % number


INVALID_RESPONSES: dict[str, tuple[Callable[[], Iterable[bytes]], str]] = {
    "a trickling body": (_trickling_body, "The request timed out."),
    "an endless head": (_endless_head, "The request timed out."),
    "a page without metrics": (
        lambda: [HEAD, b"<html>{{{ }}} x\n"],
        "The response contains no metrics.",
    ),
    "an error status": (
        lambda: [b"HTTP/1.1 503 No\r\n\r\n"],
        "The gateway responded with status 503.",
    ),
    "a body that is too large": (
        lambda: [HEAD, *itertools.repeat(b"#" * 65_536, BOUNDS.max_bytes // 65_536 + 2)],
        "The response was too large.",
    ),
    "an empty response": (list, "The endpoint did not respond (BadStatusLine)."),
}


@pytest.mark.parametrize("kind", INVALID_RESPONSES)
def test_an_invalid_response_of_one_gateway_does_not_affect_another(
    kind: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_chunks, problem = INVALID_RESPONSES[kind]
    if "timed out" not in problem:
        monkeypatch.setattr(gateway_scraper, "BOUNDS", replace(BOUNDS, total_s=60.0))
    with raw_server(make_chunks) as bad_server, raw_server(lambda: [GOOD]) as good_server:
        settings.GATEWAY_METRICS = [bad_server.url, good_server.url]

        invalid, valid = scrape_gateways()

    assert invalid.samples is None
    # For an empty response, `http.client` may also raise RemoteDisconnected, a subclass of
    # BadStatusLine.
    assert invalid.problem.replace("RemoteDisconnected", "BadStatusLine") == problem
    assert valid.samples is not None
    assert valid.samples.sum("caret_completions_total") == 3


def test_an_unreachable_gateway_is_reported(settings: Settings) -> None:
    settings.GATEWAY_METRICS = ["http://127.0.0.1:1", "no address"]

    assert [scrape.samples for scrape in scrape_gateways()] == [None, None]
    assert list_slow_requests().num_unreachable == 2


def test_without_gateways_there_are_no_scrapes(settings: Settings) -> None:
    settings.GATEWAY_METRICS = []

    assert scrape_gateways() == []


def _make_scrape(count: float, *, gateway: str = "http://one", started_s: float = 1.0) -> Scrape:
    page = (
        f'caret_completions_total{{mode="fim"}} {count}\nprocess_start_time_seconds {started_s}\n'
    )
    return Scrape(gateway, parse_metrics(page), "")


@pytest.fixture(autouse=True)
def _delete_stored_scrapes() -> None:
    connect_to_redis().delete(KEY)


def _count_completions(*scrapes: Scrape) -> tuple[float, float | None]:
    """Return the recent completions of these latest scrapes, and the seconds that they cover.

    The second value is None if no stored scrape says how long ago the counts began.
    """
    recent = count_recent(connect_to_redis(), scrapes, now_s=NOW_S)
    return recent.counters.sum("caret_completions_total"), recent.window_s


def test_counts_start_at_the_oldest_stored_scrape() -> None:
    for minute, count in ((15, 100), (5, 150)):
        store_scrapes(connect_to_redis(), [_make_scrape(count)], now_s=NOW_S - minute * 60)

    assert _count_completions(_make_scrape(180)) == (80, 900)


def test_without_a_stored_scrape_counts_start_with_the_gateway() -> None:
    assert _count_completions(_make_scrape(180)) == (180, None)


def test_a_scrape_outside_the_window_is_ignored() -> None:
    store_scrapes(connect_to_redis(), [_make_scrape(100)], now_s=NOW_S - 3 * WINDOW_S)

    assert _count_completions(_make_scrape(180)) == (180, None)


def test_a_gateway_started_within_the_window_counts_from_its_start() -> None:
    store_scrapes(connect_to_redis(), [_make_scrape(100)], now_s=NOW_S - 900)

    # The count of the first gateway has fallen from 100 to 7, so this gateway was restarted.
    new = _make_scrape(7, gateway="http://two", started_s=NOW_S - 60)
    assert _count_completions(_make_scrape(7), new) == (14, 900)


def test_a_gateway_without_an_earlier_scrape_is_excluded() -> None:
    unreachable = Scrape("http://two", None, "The request timed out.")
    store_scrapes(connect_to_redis(), [_make_scrape(100), unreachable], now_s=NOW_S - 900)

    assert _count_completions(_make_scrape(110), _make_scrape(5_000, gateway="http://two")) == (
        10,
        900,
    )


def test_the_number_of_stored_scrapes_is_limited() -> None:
    for number in range(40):
        store_scrapes(connect_to_redis(), [_make_scrape(number)], now_s=NOW_S - 900 + number)

    # One scrape a minute, with those at the beginning and the end of the window.
    assert connect_to_redis().llen(KEY) == WINDOW_S // 60 + 1


def test_a_scrape_stored_by_another_version_is_ignored() -> None:
    connect_to_redis().lpush(KEY, b"\x93\x01\x02\x03")  # a MessagePack array of three numbers

    assert _count_completions(_make_scrape(180)) == (180, None)
