"""The operators' pages work even if Redis contains unexpected data."""

from collections.abc import Iterator

import msgspec
import pytest
from django.utils import timezone

from caret.contracts.drained_replicas import (
    DRAINS,
    DRAINS_LOG,
    DRAINS_VERSION,
    SCHEMA,
    DrainChange,
    encode_drain,
)
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.pools.daily_usage import (
    DAYS,
    REPLICA_SECONDS,
    PoolCounts,
    count_recent_pool_usage,
)
from tenants.fleet.pools.scraping.recent_scrapes import KEY as SCRAPES
from tests.integration.operators.browsers import signed_in
from tests.integration.operators.gateways import forget_drains

TODAY = timezone.now().date().isoformat()


@pytest.fixture(autouse=True)
def _delete_planted_data() -> Iterator[None]:
    yield
    connect_to_redis().delete(DRAINS_VERSION)
    forget_drains(connect_to_redis())
    connect_to_redis().delete(DAYS, REPLICA_SECONDS, SCRAPES)


def _encode_drain(replica: str, at_ms: int = 0) -> bytes:
    drain = DrainChange(
        schema=SCHEMA,
        replica=replica,
        is_drained=True,
        operator="ola",
        reason="Ticket 4711",
        at_ms=at_ms,
    )
    return encode_drain(drain)


@pytest.mark.parametrize("replica", ["", "/", "a/b", "a\nb", "..", "?", "\N{SNOWMAN}"])
def test_a_drained_replica_with_an_unusual_name_is_shown(replica: str) -> None:
    connect_to_redis().hset(DRAINS, replica, _encode_drain(replica))

    page = signed_in().client.get("/operators/pools")

    assert page.status_code == 200
    assert "Ticket 4711" in page.content.decode()


def test_a_replica_with_a_slash_in_its_name_can_be_undrained() -> None:
    connect_to_redis().hset(DRAINS, "a/b", _encode_drain("a/b"))

    page = signed_in().client.get("/operators/replicas/a/b/undrain")

    assert page.status_code == 200
    assert "a/b" in page.content.decode()


@pytest.mark.parametrize("at_ms", [10**18, -(10**18), 2**63 - 1])
def test_an_invalid_time_is_shown_as_the_epoch(at_ms: int) -> None:
    connect_to_redis().lpush(DRAINS_LOG, _encode_drain("10.0.0.1:8000", at_ms))

    page = signed_in().client.get("/operators/pools")

    assert page.status_code == 200
    assert "1970-01-01 00:00" in page.content.decode()


def test_an_undecodable_version_does_not_break_the_page() -> None:
    connect_to_redis().set(DRAINS_VERSION, b"\xff")

    assert signed_in().client.get("/operators/pools").status_code == 200


@pytest.mark.parametrize(
    "raw_counts",
    [b"\xc1", b"\x81\xa1\xff\x90", msgspec.msgpack.encode(["x"])],
    ids=["not MessagePack", "a pool name that is not UTF-8", "a list"],
)
def test_unreadable_counts_are_ignored(raw_counts: bytes) -> None:
    connect_to_redis().hset(DAYS, TODAY, raw_counts)
    connect_to_redis().hset(REPLICA_SECONDS, f"{TODAY}|fast", "many")
    connect_to_redis().hset(REPLICA_SECONDS, b"\xff", "1")

    count_recent_pool_usage(connect_to_redis(), now=timezone.now())

    assert signed_in().client.get("/operators/cost").status_code == 200


@pytest.mark.parametrize(
    "stored_scrape",
    [b"\xc1", b"\x92\xcb\x7f\xf8\0\0\0\0\0\0\x80", b"\x92\1\x81\xa1\xff\x90"],
    ids=["not MessagePack", "a time that is NaN", "a gateway name that is not UTF-8"],
)
def test_unreadable_stored_scrapes_are_ignored(stored_scrape: bytes) -> None:
    connect_to_redis().lpush(SCRAPES, stored_scrape)

    assert signed_in().client.get("/operators/").status_code == 200


def test_the_csv_file_escapes_formulas_in_pool_names() -> None:
    counts_by_pool = {"=1+1": PoolCounts(1, 10, 10, 0)}
    connect_to_redis().hset(DAYS, TODAY, msgspec.msgpack.encode(counts_by_pool))

    file = signed_in().client.get("/operators/cost?as=csv").content.decode()

    assert "\n'=1+1," in file  # after an apostrophe, a spreadsheet shows a text and no result
