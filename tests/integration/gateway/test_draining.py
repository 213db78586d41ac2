"""Replicas drained by operators, with real gateways and a real Valkey; the engine is a fake."""

import asyncio
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import redis

from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.operator_roles import OperatorRole
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.pools.draining import DrainRequest, LastReplicaOfPool, read_drains, set_drain
from tenants.fleet.pools.scraping.metric_samples import parse_metrics
from tests.benchmarks.installation import create_home
from tests.functional.gateway.gateway_stack import Site, request_completion, start_site, wait_until
from tests.integration.gateway.engine_control import held_engine
from tests.integration.gateway.requests import find_serving_replicas, small_frame

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
# A held engine pauses a completion with more than HELD_TOKENS tokens (see `fake_engine`) before its
# end, so a completion with MANY_TOKENS stays in flight. Completions of 2 tokens, which is the
# default of `small_frame`, still finish.
MANY_TOKENS = 64


@pytest.fixture(scope="module")
def site(fake_engine_url: str) -> Iterator[Site]:
    """A gateway with two replicas, which are one engine under two names."""
    second_url = fake_engine_url.replace("127.0.0.1", "localhost")
    with (
        create_home() as home,
        start_site(home, fake_engine_url, replicas=[fake_engine_url, second_url]) as site,
    ):
        yield site


@pytest.fixture
def connection(site: Site) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(site.home.paths.redis_url.read_text().strip()) as connection:
        yield connection
        # Undrain the replicas that the test has drained.
        for replica in read_drains(connection).drained:
            _set_drain(connection, site, replica, is_drained=False)


def _operator(role: OperatorRole = OperatorRole.ADMIN) -> OperatorView:
    return OperatorView(
        id=uuid.UUID(int=1),
        handle="ola",
        name="Ola",
        role=role,
        created_at=NOW,
        disabled_at=None,
        password_version="",
    )


def _replicas(site: Site) -> list[str]:
    """Return the names of the two replicas, such as `127.0.0.1:8000`."""
    address = site.engine_url.removeprefix("http://")
    return [address, address.replace("127.0.0.1", "localhost")]


def _set_drain(connection: redis.Redis, site: Site, replica: str, **fields: object) -> None:
    all_replicas = frozenset(_replicas(site))
    request_fields = {"is_drained": True, "reason": "Ticket 4711"} | fields
    set_drain(
        connection,
        operator=_operator(),
        drain_request=DrainRequest(replica, **request_fields),  # type: ignore[arg-type]  # fields of any type, as tests pass them
        replicas_by_pool={"demo-fast": all_replicas, "demo-quality": all_replicas},
        now=NOW,
    )


async def _read_metric(site: Site, name: str, **labels: str) -> float:
    return parse_metrics(await site.metrics()).sum(name, **labels)


async def _is_drained(site: Site, replica: str) -> bool:
    return await _read_metric(site, "caret_replica_drained", replica=replica) == 1


async def test_a_drained_replica_finishes_its_requests_and_gets_no_new_ones(
    site: Site, connection: redis.Redis
) -> None:
    first, second = _replicas(site)
    async with site.stream() as stream:
        async with held_engine(site.engine_url):
            completion = asyncio.create_task(
                request_completion(stream, small_frame(site, max_tokens=MANY_TOKENS, path="a.py"))
            )

            async def is_under_way() -> bool:
                return await _read_metric(site, "caret_replica_requests_in_flight") == 1

            assert await wait_until(is_under_way)
            busy = (
                first
                if await _read_metric(site, "caret_replica_requests_in_flight", replica=first)
                else second
            )
            _set_drain(connection, site, busy)

            async def is_drained() -> bool:
                return await _is_drained(site, busy)

            assert await wait_until(is_drained)
            serving_replicas = await find_serving_replicas(site)
            assert not completion.done()
        _, done = await completion

    assert serving_replicas == {first, second} - {busy}
    assert done["meta"]["replica"] == busy
    # All requested tokens were generated, even if the filter withheld their text.
    assert done["meta"]["generated_tokens"] == MANY_TOKENS


async def test_a_gateway_applies_a_drain_soon(site: Site, connection: redis.Redis) -> None:
    replica, _ = _replicas(site)

    _set_drain(connection, site, replica)

    async def is_drained() -> bool:
        return await _is_drained(site, replica)

    # It takes less than a second, but longer on a busy machine.
    assert await wait_until(is_drained, timeout_s=10.0)


async def test_a_restarted_gateway_knows_the_drained_replica(
    site: Site, connection: redis.Redis
) -> None:
    first, second = _replicas(site)
    _set_drain(connection, site, first)

    await asyncio.to_thread(site.gateway.child.stop)
    await asyncio.to_thread(site.launch_gateway)

    assert await find_serving_replicas(site) == {second}


async def test_an_undrained_replica_gets_requests_again(
    site: Site, connection: redis.Redis
) -> None:
    first, second = _replicas(site)
    _set_drain(connection, site, first)
    _set_drain(connection, site, first, is_drained=False)

    async def are_both_used() -> bool:
        return await find_serving_replicas(site) == {first, second}

    assert await wait_until(are_both_used)


async def test_draining_the_last_replica_requires_its_name_and_sheds_all_load(
    site: Site, connection: redis.Redis
) -> None:
    first, second = _replicas(site)
    _set_drain(connection, site, first)

    with pytest.raises(LastReplicaOfPool) as rejection:
        _set_drain(connection, site, second)
    _set_drain(connection, site, second, confirmation=second)

    async def is_drained() -> bool:
        return await _is_drained(site, second)

    assert await wait_until(is_drained)
    async with site.stream() as stream:
        text, done = await request_completion(stream, small_frame(site))
    assert rejection.value.pools == ["demo-fast", "demo-quality"]
    assert (text, done["finish_reason"]) == ("", "shed")


async def test_an_invalid_drain_request_changes_nothing(
    site: Site, connection: redis.Redis
) -> None:
    replica, _ = _replicas(site)
    before = read_drains(connection)

    with pytest.raises(NotFound):
        _set_drain(connection, site, "10.0.0.9:8000")
    with pytest.raises(InvalidValue):
        _set_drain(connection, site, replica, reason="  ")
    with pytest.raises(Conflict):
        _set_drain(connection, site, replica, is_drained=False)

    assert read_drains(connection) == before


async def test_the_support_role_cannot_drain_replicas(site: Site, connection: redis.Redis) -> None:
    replica, _ = _replicas(site)

    with pytest.raises(Forbidden):
        set_drain(
            connection,
            operator=_operator(OperatorRole.SUPPORT),
            drain_request=DrainRequest(replica, is_drained=True, reason="x"),
            replicas_by_pool={"demo-fast": frozenset(_replicas(site))},
            now=NOW,
        )

    assert replica not in read_drains(connection).drained


async def test_drains_are_logged_with_operator_and_reason(
    site: Site, connection: redis.Redis
) -> None:
    replica, _ = _replicas(site)

    _set_drain(connection, site, replica, reason="Ticket 4711")
    _set_drain(connection, site, replica, is_drained=False, reason="Repaired")

    latest = read_drains(connection).latest[:2]
    assert [(change.operator, change.reason, change.is_drained) for change in latest] == [
        ("ola", "Repaired", False),
        ("ola", "Ticket 4711", True),
    ]
    assert latest[0].at == NOW
