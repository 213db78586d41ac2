"""Usage of each pool, summed over all tenants despite row-level security, and the cost of pools."""

import csv
import io
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.utils import timezone
from msgspec import msgpack
from pytest_django import Settings

from caret.foundation.ids import uuid7
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.pools.daily_usage import (
    ALL_COUNTED,
    DAYS,
    REPLICA_SECONDS,
    REPLICA_SECONDS_AT,
    PoolCounts,
    count_pool_usage,
    count_recent_pool_usage,
    read_pool_usage,
    read_replica_seconds,
    record_replica_seconds,
)
from tenants.fleet.pools.scraping.installation_status import read_installation_status
from tenants.models import Outcome, UsageRecord
from tests.fixtures.companies import (
    ACME_PEOPLE,
    GLOBEX_PEOPLE,
    Company,
    completion_fields,
    make_company,
)
from tests.integration.operators.browsers import signed_in
from tests.integration.operators.gateways import Gateway
from tests.stack.services import Services

# Otherwise a day could end between two completions of a test.
pytestmark = pytest.mark.usefixtures("stopped_clock")


@pytest.fixture(autouse=True)
def _delete_counts() -> Iterator[None]:
    connect_to_redis().delete(DAYS, REPLICA_SECONDS, REPLICA_SECONDS_AT, ALL_COUNTED)
    yield
    connect_to_redis().delete(DAYS, REPLICA_SECONDS, REPLICA_SECONDS_AT, ALL_COUNTED)


@pytest.fixture
def acme() -> Company:
    return make_company("acme", ACME_PEOPLE)


@pytest.fixture
def globex() -> Company:
    return make_company("globex", GLOBEX_PEOPLE)


@pytest.fixture
def pool() -> str:
    """Return a pool for this test alone: the tables are shared."""
    return f"pool-{secrets.token_hex(4)}"


def _complete(
    company: Company, pool: str, *, ago: timedelta = timedelta(), accepted: int = 0
) -> None:
    """Add a completion of 10 tokens and 100 characters. Accept `accepted` of its characters.

    So 10 accepted characters count as one accepted token.
    """
    at = timezone.now() - ago
    request_id = uuid7(now_ms=int(at.timestamp() * 1000))
    fields = completion_fields(pool=pool, generated_tokens=10, num_chars=100, request_id=request_id)
    with tenant_scope(company.tenant_id):
        UsageRecord.objects.create(
            tenant_id=company.tenant_id, occurred_at=at, user_id=company.developer.user_id, **fields
        )
        if accepted:
            Outcome.objects.create(
                tenant_id=company.tenant_id,
                occurred_at=at,
                outcome_id=uuid7(),
                request_id=request_id,
                user_id=company.developer.user_id,
                event="accepted",
                chars=accepted,
                after_ms=900,
                lines=1,
            )


def _read_counts(pool: str, *, num_days: int = 3, now: datetime | None = None) -> list[PoolCounts]:
    """Return the counts of this pool, newest day first.

    PoolCounts has the number of requests, and their prompt, generated and accepted tokens. Each
    completion has 1,900 prompt tokens.
    """
    days = read_pool_usage(connect_to_redis(), num_days=num_days, now=now or timezone.now())
    return [days[day][pool] for day in sorted(days, reverse=True) if pool in days[day]]


def test_usage_of_all_tenants_is_summed_by_day_and_pool(
    acme: Company, globex: Company, pool: str
) -> None:
    _complete(acme, pool, accepted=50)
    _complete(globex, pool, accepted=100)
    _complete(globex, pool)
    _complete(acme, pool, ago=timedelta(days=1))

    count_pool_usage(connect_to_redis(), num_days=3, now=timezone.now())

    assert _read_counts(pool) == [PoolCounts(3, 5_700, 30, 15), PoolCounts(1, 1_900, 10, 0)]


def test_counting_twice_gives_the_same_counts(acme: Company, pool: str) -> None:
    _complete(acme, pool, accepted=50)

    for _ in range(2):
        count_pool_usage(connect_to_redis(), num_days=3, now=timezone.now())

    assert _read_counts(pool) == [PoolCounts(1, 1_900, 10, 5)]


def test_a_day_keeps_its_counts_after_its_records_are_deleted(
    services: Services, acme: Company, pool: str
) -> None:
    for _ in range(3):
        _complete(acme, pool)
    count_pool_usage(connect_to_redis(), num_days=3, now=timezone.now())
    with tenant_scope(acme.tenant_id):
        kept_id = UsageRecord.objects.filter(pool=pool).latest("occurred_at").request_id
    # As the tables' owner: the application may not delete such young records. One record remains,
    # so that the day is counted again.
    with psycopg.connect(services.owner_database_url, autocommit=True) as owner:
        owner.execute("ALTER TABLE tenants_usage_record NO FORCE ROW LEVEL SECURITY")
        deletion = owner.execute(
            "DELETE FROM tenants_usage_record WHERE pool = %s AND request_id <> %s", [pool, kept_id]
        )
        owner.execute("ALTER TABLE tenants_usage_record FORCE ROW LEVEL SECURITY")
    assert deletion.rowcount == 2

    count_pool_usage(connect_to_redis(), num_days=3, now=timezone.now())

    assert _read_counts(pool) == [PoolCounts(3, 5_700, 30, 0)]


def test_older_days_are_counted_once_a_day_and_recent_ones_each_time(
    acme: Company, pool: str
) -> None:
    # Old, but in this or the previous month: the test database has partitions for these only.
    old = timedelta(days=5)
    _complete(acme, pool, ago=old)
    count_recent_pool_usage(connect_to_redis(), now=timezone.now())
    _complete(acme, pool, ago=old)
    _complete(acme, pool)

    count_recent_pool_usage(connect_to_redis(), now=timezone.now())

    # The second completion of the older day is not counted before tomorrow.
    assert [day.requests for day in _read_counts(pool, num_days=30)] == [1, 1]


def test_counts_older_than_a_quarter_are_deleted() -> None:
    now = timezone.now()
    kept_day = (now - timedelta(days=89)).date().isoformat()
    expired_day = (now - timedelta(days=95)).date().isoformat()
    for day in (kept_day, expired_day):
        connect_to_redis().hset(DAYS, day, b"\x80")  # an empty map, in MessagePack
        connect_to_redis().hset(REPLICA_SECONDS, f"{day}|fast", 60)

    count_pool_usage(connect_to_redis(), num_days=3, now=now)

    counted_days = connect_to_redis().hkeys(DAYS)
    assert kept_day.encode() in counted_days
    assert expired_day.encode() not in counted_days
    assert connect_to_redis().hkeys(REPLICA_SECONDS) == [f"{kept_day}|fast".encode()]


def test_replica_seconds_are_recorded(gateway: Gateway) -> None:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    installation = read_installation_status(now=now)

    for minute in range(3):
        record_replica_seconds(
            connect_to_redis(), installation, now=now + timedelta(minutes=minute)
        )

    # 3 minutes of 2 replicas. Each replica is in both pools, so each pool gets half of its time:
    # 3 * 2 * 30 s.
    seconds = read_replica_seconds(connect_to_redis(), num_days=7, now=now)
    assert seconds == {now.date(): {"demo-fast": 180, "demo-quality": 180}}


def test_a_repeated_minute_is_recorded_once(gateway: Gateway) -> None:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    installation = read_installation_status(now=now)

    for after_s in (0, 0, 60, 40):  # the clock goes back before the last call
        record_replica_seconds(
            connect_to_redis(), installation, now=now + timedelta(seconds=after_s)
        )

    # 120 s of 2 replicas: a minute before the first call, and a minute after it.
    seconds = read_replica_seconds(connect_to_redis(), num_days=7, now=now)
    assert seconds == {now.date(): {"demo-fast": 120, "demo-quality": 120}}


def test_a_late_call_records_the_time_that_has_passed(gateway: Gateway) -> None:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    installation = read_installation_status(now=now)

    for after_s in (0, 75, 120):
        record_replica_seconds(
            connect_to_redis(), installation, now=now + timedelta(seconds=after_s)
        )

    # Of 2 replicas: a minute before the first call, and 120 s after it.
    seconds = read_replica_seconds(connect_to_redis(), num_days=7, now=now)
    assert seconds == {now.date(): {"demo-fast": 180, "demo-quality": 180}}


def test_a_gap_is_recorded_as_a_minute(gateway: Gateway) -> None:
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    installation = read_installation_status(now=now)

    for minute in (0, 10):
        record_replica_seconds(
            connect_to_redis(), installation, now=now + timedelta(minutes=minute)
        )

    seconds = read_replica_seconds(connect_to_redis(), num_days=7, now=now)
    assert seconds == {now.date(): {"demo-fast": 120, "demo-quality": 120}}


def _store_counts(pool: str, counts: PoolCounts, *, replica_hours: float) -> None:
    """Store counts and replica hours of the pool for today."""
    day = timezone.now().astimezone(UTC).date().isoformat()
    connect_to_redis().hset(DAYS, day, msgpack.encode({pool: counts}))
    connect_to_redis().hset(REPLICA_SECONDS, f"{day}|{pool}", int(replica_hours * 3_600))


def _page(**query: Any) -> Any:
    return signed_in().client.get("/operators/cost", query)


def test_the_page_shows_the_cost_of_a_thousand_accepted_tokens(settings: Settings) -> None:
    settings.GATEWAY_METRICS = []
    _store_counts("fast", PoolCounts(50, 90_000, 20_000, 8_000), replica_hours=10)

    html = _page(days="7", price="2.00").content.decode()

    assert "2.5000" in html  # 10 hours at 2.00 cost 20.00, for 8,000 accepted tokens
    assert "samples exist for 1 of 7 days" in html
    assert 'name="price" value="2.00"' in html


def test_the_csv_file_has_the_figures_of_the_page(settings: Settings) -> None:
    settings.GATEWAY_METRICS = []
    _store_counts("fast", PoolCounts(50, 90_000, 20_000, 8_000), replica_hours=10)

    response = _page(days="90", price="2.00", **{"as": "csv"})  # `as` is a keyword of Python

    (fast, total, note) = csv.DictReader(io.StringIO(response.content.decode()))
    assert response["Content-Disposition"] == 'attachment; filename="cost-90-days.csv"'
    assert (fast["pool"], total["pool"]) == ("fast", "all")
    assert fast["cost_per_1000_accepted_tokens"] == "2.500000"
    assert int(total["accepted_tokens"]) == 8_000
    assert "samples exist for 1 of 90 days" in note["pool"]


def test_the_price_defaults_to_the_setting(settings: Settings) -> None:
    settings.GATEWAY_METRICS = []
    settings.REPLICA_HOUR_CENTS = 123

    assert 'name="price" value="1.23"' in _page().content.decode()


@pytest.mark.parametrize("price", ["cheap", "-1", "nan", "inf", "1e99"])
def test_an_invalid_price_gets_an_error_and_stays_in_the_form(
    settings: Settings, price: str
) -> None:
    settings.GATEWAY_METRICS = []

    response = _page(price=price)

    assert response.status_code == 400
    assert "Enter a number, such as 2.50." in response.content.decode()
    assert f'name="price" value="{price}"' in response.content.decode()


@pytest.mark.parametrize("days", ["0", "8", "x", ""])
def test_an_invalid_period_means_30_days(settings: Settings, days: str) -> None:
    settings.GATEWAY_METRICS = []

    assert "of 30 days" in _page(days=days).content.decode()


def test_the_page_without_counts_names_the_command_that_counts(settings: Settings) -> None:
    settings.GATEWAY_METRICS = []

    assert "run manage.py recount_pool_usage" in _page().content.decode()


def test_the_command_counts_older_days(
    acme: Company, pool: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _complete(acme, pool, ago=timedelta(days=5))

    call_command("recount_pool_usage")

    assert "days with requests." in capsys.readouterr().out
    assert [day.requests for day in _read_counts(pool, num_days=30)] == [1]
