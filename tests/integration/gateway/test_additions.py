"""Replicas added by operators, with real gateways and a real Valkey; the engine is a fake."""

import asyncio
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import redis
from msgspec.structs import replace

from caret.contracts.added_replicas import (
    ADDITIONS,
    ADDITIONS_CHANGED,
    ADDITIONS_LOG,
    ADDITIONS_VERSION,
    decode_replica_change,
    encode_replica_change,
)
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.operator_roles import OperatorRole
from tenants.fleet.operators.accounts import OperatorView
from tenants.fleet.pools.added_replicas import (
    AdditionRequest,
    FleetView,
    RemovalRequest,
    add_replica,
    read_additions,
    remove_replica,
)
from tenants.fleet.pools.draining import LastReplicaOfPool
from tenants.fleet.pools.fleet_state import FleetStateStore
from tenants.fleet.pools.pool_status import list_allowed_hosts_by_pool, list_replicas_by_pool
from tenants.fleet.pools.scraping.metric_samples import MetricSamples, parse_metrics
from tests.benchmarks.installation import create_home
from tests.functional.gateway.gateway_stack import Site, start_site, wait_until
from tests.integration.gateway.requests import find_serving_replicas

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
POOL = "demo-fast"


@pytest.fixture(scope="module")
def site(fake_engine_url: str) -> Iterator[Site]:
    """A gateway with one replica. Tests add the same engine under another host name."""
    allowed_hosts = ["localhost", "127.0.0.0/8"]
    with (
        create_home() as home,
        start_site(home, fake_engine_url, additions_from=allowed_hosts) as site,
    ):
        yield site


@pytest.fixture
def connection(site: Site) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(site.home.paths.redis_url.read_text().strip()) as connection:
        yield connection
        # Remove the replicas that the test has added.
        connection.delete(ADDITIONS)
        connection.incr(ADDITIONS_VERSION)  # so that the gateway reads the change


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


def _other_url(site: Site) -> str:
    """Return the URL of the same engine under another host name, `localhost`."""
    return site.engine_url.replace("127.0.0.1", "localhost")


async def _read_metrics(site: Site) -> MetricSamples:
    return parse_metrics(await site.metrics())


async def _read_fleet(site: Site, *drained: str) -> FleetView:
    samples = await _read_metrics(site)
    return FleetView(
        list_replicas_by_pool(samples), list_allowed_hosts_by_pool(samples), frozenset(drained)
    )


async def _add_replica(
    connection: redis.Redis,
    site: Site,
    *,
    role: OperatorRole = OperatorRole.ADMIN,
    **fields: str,
) -> str:
    form_fields = {"pool": POOL, "url": _other_url(site), "reason": "Ticket 4711"} | fields
    # The previous test has removed this replica, but the gateway may not know that yet.
    assert await _wait_for_membership(
        site, _other_url(site).removeprefix("http://"), is_member=False
    )
    fleet = await _read_fleet(site)
    return add_replica(
        connection,
        operator=_operator(role),
        addition=AdditionRequest(**form_fields),
        fleet=fleet,
        now=NOW,
    )


async def _remove_replica(
    connection: redis.Redis, site: Site, fleet: FleetView, **fields: str
) -> None:
    form_fields = {
        "pool": POOL,
        "replica": _other_url(site).removeprefix("http://"),
        "reason": "Repaired",
    } | fields
    remove_replica(
        connection,
        operator=_operator(),
        removal=RemovalRequest(**form_fields),
        fleet=fleet,
        now=NOW,
    )


async def _wait_for_membership(site: Site, replica: str, *, is_member: bool) -> bool:
    """Wait until the gateway has the replica in the pool, or has it no longer."""

    async def is_as_expected() -> bool:
        replicas = list_replicas_by_pool(await _read_metrics(site))[POOL]
        return (replica in replicas) == is_member

    return await wait_until(is_as_expected)


async def test_an_added_replica_gets_requests_until_it_is_removed(
    site: Site, connection: redis.Redis
) -> None:
    initial = site.engine_url.removeprefix("http://")
    replicas_before = await find_serving_replicas(site)

    added = await _add_replica(connection, site)
    has_joined = await _wait_for_membership(site, added, is_member=True)
    replicas_with_addition = await find_serving_replicas(site)
    await _remove_replica(connection, site, await _read_fleet(site))
    has_left = await _wait_for_membership(site, added, is_member=False)

    assert (has_joined, has_left) == (True, True)
    assert replicas_before == {initial}
    assert replicas_with_addition == {initial, added}
    assert await find_serving_replicas(site) == {initial}


async def test_a_restarted_gateway_knows_the_added_replica(
    site: Site, connection: redis.Redis
) -> None:
    added = await _add_replica(connection, site)

    await asyncio.to_thread(site.gateway.child.stop)
    await asyncio.to_thread(site.launch_gateway)

    assert added in list_replicas_by_pool(await _read_metrics(site))[POOL]


async def test_a_forged_addition_in_redis_receives_no_prompts(
    site: Site, connection: redis.Redis
) -> None:
    """The gateway checks its own allowed hosts, even for additions that it reads from Redis."""
    async with _ForbiddenListener() as (url, connections):
        added = await _add_replica(connection, site)
        field = f"{POOL} {added}".encode()
        addition = decode_replica_change(connection.hget(ADDITIONS, field))  # type: ignore[arg-type]  # it exists
        connection.hset(ADDITIONS, field, encode_replica_change(replace(addition, url=url)))
        connection.incr(ADDITIONS_VERSION)

        async def is_refused() -> bool:
            samples = await _read_metrics(site)
            return samples.sum("caret_replica_rejected", reason="host_not_allowed", pool=POOL) == 1

        assert await wait_until(is_refused)
        await find_serving_replicas(site)
        assert connections == []


class _ForbiddenListener:
    """Listens on an address outside the allowed networks, and records connections."""

    async def __aenter__(self) -> tuple[str, list[str]]:
        connections: list[str] = []

        async def on_connected(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connections.append("a connection")
            writer.close()

        self._server = await asyncio.start_server(on_connected, "::1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return f"http://[::1]:{port}", connections

    async def __aexit__(self, *_: object) -> None:
        self._server.close()


@pytest.mark.parametrize(
    ("fields", "wrong_field"),
    [
        ({"url": "http://10.9.9.9:8000"}, "url"),
        ({"url": "http://localhost.evil.example:8000"}, "url"),
        ({"url": "http://user:secret@localhost:8000"}, "url"),
        ({"url": "http://:secret@localhost:8000"}, "url"),
        ({"url": "http://@localhost:8000"}, "url"),
        ({"url": "http://localhost:0"}, "url"),
        ({"url": "http://localhost:8000/v1"}, "url"),
        ({"url": "http://localhost:99999"}, "url"),
        ({"url": "http://localhost:80 00"}, "url"),
        ({"url": "ftp://localhost"}, "url"),
        ({"url": "localhost:8000"}, "url"),
        ({"url": "http://[::1"}, "url"),
        ({"url": "http://"}, "url"),
        ({"url": ""}, "url"),
        ({"url": "http://localhost:1/\x00"}, "url"),
        ({"kv_events": "tcp://10.9.9.9:5557"}, "kv_events"),
        ({"kv_events": "tcp://localhost"}, "kv_events"),
        ({"kv_events": "http://localhost:5557"}, "kv_events"),
        ({"speculation": "suffix"}, "speculation"),  # not in ALLOWED_SPECULATION
        ({"reason": "  "}, "reason"),
    ],
)
async def test_an_invalid_value_is_rejected_with_its_field(
    site: Site, connection: redis.Redis, fields: dict[str, Any], wrong_field: str
) -> None:
    with pytest.raises(InvalidValue) as rejection:
        await _add_replica(connection, site, **fields)

    assert rejection.value.field == wrong_field
    assert read_additions(connection).replicas == {}


@pytest.mark.parametrize(
    ("url", "name"),
    [
        (" http://LOCALHOST:08000/ ", "localhost:8000"),
        ("http://localhost:", "localhost"),
        ("https://127.0.0.9:443", "127.0.0.9:443"),
    ],
)
async def test_a_url_is_normalized_to_a_replica_name(
    site: Site, connection: redis.Redis, url: str, name: str
) -> None:
    assert await _add_replica(connection, site, url=url) == name


async def test_conflicting_or_forbidden_changes_are_refused(
    site: Site, connection: redis.Redis
) -> None:
    with pytest.raises(Conflict, match="is already in this pool"):
        await _add_replica(connection, site, url=site.engine_url)
    with pytest.raises(NotFound):
        await _add_replica(connection, site, pool="nobody's")
    with pytest.raises(NotFound):
        await _remove_replica(connection, site, await _read_fleet(site))
    with pytest.raises(Forbidden):
        await _add_replica(connection, site, role=OperatorRole.SUPPORT)


async def test_a_pool_without_allowed_networks_accepts_no_replica(
    site: Site, connection: redis.Redis
) -> None:
    fleet = FleetView(replicas_by_pool={POOL: frozenset()}, allowed_hosts={}, drained=frozenset())
    addition = AdditionRequest(pool=POOL, url="http://localhost:1", reason="Ticket 4711")

    with pytest.raises(Conflict, match="does not allow you to add replicas"):
        add_replica(connection, operator=_operator(), addition=addition, fleet=fleet, now=NOW)


async def test_removing_the_last_replica_requires_its_name(
    site: Site, connection: redis.Redis
) -> None:
    initial, added = site.engine_url.removeprefix("http://"), await _add_replica(connection, site)
    assert await _wait_for_membership(site, added, is_member=True)
    # With the initial replica drained, the added one is the last that gets requests.
    fleet = await _read_fleet(site, initial)

    with pytest.raises(LastReplicaOfPool):
        await _remove_replica(connection, site, fleet)
    await _remove_replica(connection, site, fleet, confirmation=added)

    assert read_additions(connection).replicas == {}


async def test_changes_are_logged_with_operator_and_reason(
    site: Site, connection: redis.Redis
) -> None:
    added = await _add_replica(connection, site)
    await _remove_replica(connection, site, await _read_fleet(site))

    latest = read_additions(connection).latest[:2]
    assert [(change.replica, change.is_added, change.reason) for change in latest] == [
        (added, False, "Repaired"),
        (added, True, "Ticket 4711"),
    ]
    assert (latest[0].operator, latest[0].at) == ("ola", NOW)


async def test_a_concurrent_change_is_refused(site: Site, connection: redis.Redis) -> None:
    store = FleetStateStore(ADDITIONS, ADDITIONS_VERSION, ADDITIONS_LOG, ADDITIONS_CHANGED)
    version_before = read_additions(connection).version
    await _add_replica(connection, site)

    with pytest.raises(Conflict, match="Another operator"):
        store.change_entry(connection, f"{POOL} a:1", b"", is_set=True, version=version_before)

    assert len(read_additions(connection).replicas) == 1
