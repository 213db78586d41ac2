"""The replicas of a pool: those that are listed, discovered or added, and match the majority.

The pools file lists a replica, or a DNS name whose addresses are discovered. Operators add others.
`reconcile(checks_all=False)` does not ask accepted replicas for their identity again.
"""

import asyncio
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from caret.contracts.policy import Tier
from inference.pools.discovery.pool_members import NameNotFound
from inference.pools.discovery.replica_identity import MismatchReason, ReplicaIdentity
from inference.pools.pool_config import Pool, Replica
from tests.fakes.pool_members import TOKEN_IDS, Fleet, identity
from tests.fakes.pools import make_pool

ENGINES = Replica(name="engines:8000", url="http://engines:8000")
ONE, TWO, THREE = "10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.3:8000"


def _pools(fast: Pool) -> tuple[Pool, Pool]:
    return fast, make_pool("http://else:8000", tier=Tier.QUALITY)


def _make_discovering_fleet() -> Fleet:
    fleet = Fleet(_pools(replace(make_pool(), replicas=(), discover=ENGINES)))
    fleet.network.identities = {name: identity() for name in (ONE, TWO, THREE)}
    return fleet


def _make_fleet(*names: str) -> Fleet:
    fleet = Fleet(_pools(make_pool(*(f"http://{name}" for name in names))))
    fleet.network.identities = {name: identity() for name in names}
    return fleet


async def test_each_address_of_the_dns_name_is_a_replica() -> None:
    fleet = _make_discovering_fleet()
    fleet.network.set_addresses("engines", ["10.0.0.2", "10.0.0.1"])

    await fleet.pool_members.reconcile()

    assert fleet.names() == [ONE, TWO]


async def test_a_joining_replica_gets_requests_after_identifying_itself() -> None:
    fleet = _make_discovering_fleet()
    fleet.network.set_addresses("engines", ["10.0.0.1", "10.0.0.2"])
    stated_identity = fleet.network.identities.pop(TWO)

    await fleet.pool_members.reconcile()
    names_before, reason_before = fleet.names(), fleet.rejection_reasons()[TWO]
    fleet.network.identities[TWO] = stated_identity
    await fleet.pool_members.reconcile(checks_all=False)

    assert (names_before, reason_before) == ([ONE], MismatchReason.UNREACHABLE)
    assert fleet.names() == [ONE, TWO]
    assert TWO not in fleet.rejection_reasons()


async def test_a_leaving_replica_finishes_its_requests_and_gets_no_new_ones() -> None:
    fleet = _make_discovering_fleet()
    fleet.network.set_addresses("engines", ["10.0.0.1", "10.0.0.2"])
    await fleet.pool_members.reconcile()
    leaving = fleet.catalog.by_name["demo-fast"].replicas[1]

    with fleet.replicas.attempt(leaving):
        fleet.network.set_addresses("engines", ["10.0.0.1"])
        await fleet.pool_members.reconcile()
        num_in_flight = fleet.replicas.num_in_flight(leaving)

    assert fleet.names() == [ONE]
    assert num_in_flight == 1


async def test_a_failed_resolution_removes_no_replica() -> None:
    fleet = _make_discovering_fleet()
    fleet.network.set_addresses("engines", ["10.0.0.1", "10.0.0.2"])
    await fleet.pool_members.reconcile()

    fleet.network.addresses.clear()  # now the resolution fails
    await fleet.pool_members.reconcile()

    assert fleet.names() == [ONE, TWO]


async def test_a_change_of_the_pool_is_reported_once() -> None:
    fleet = _make_discovering_fleet()
    sizes: list[int] = []
    fleet.pool_members.changed.append(lambda pool: sizes.append(len(pool.replicas)))
    fleet.network.set_addresses("engines", ["10.0.0.1", "10.0.0.2"])

    await fleet.pool_members.reconcile()
    await fleet.pool_members.reconcile()

    assert sizes == [2]


@pytest.mark.parametrize(
    ("identity", "reason"),
    [
        (identity(model="other"), MismatchReason.MODEL),
        (identity(root="/models/demo-2"), MismatchReason.VERSION),
        (identity(max_context_tokens=2048), MismatchReason.CONTEXT_LENGTH),
        (identity(token_ids=(5, 6)), MismatchReason.TOKENIZER),
        (identity(token_ids=TOKEN_IDS[::-1]), MismatchReason.TOKENIZER),
        (identity(block_tokens=16), MismatchReason.BLOCK_SIZE),
    ],
)
async def test_a_replica_that_differs_from_the_majority_is_rejected(
    identity: ReplicaIdentity, reason: MismatchReason
) -> None:
    fleet = _make_fleet(ONE, TWO, THREE)
    fleet.network.identities[TWO] = identity

    await fleet.pool_members.reconcile()

    assert fleet.names() == [ONE, THREE]
    assert fleet.rejection_reasons().get(TWO) == reason


async def test_a_corrected_replica_is_accepted_again() -> None:
    fleet = _make_fleet(ONE, TWO, THREE)
    fleet.network.identities[TWO] = identity(block_tokens=16)
    await fleet.pool_members.reconcile()

    fleet.network.identities[TWO] = identity()
    await fleet.pool_members.reconcile(checks_all=False)

    assert fleet.names() == [ONE, TWO, THREE]
    assert fleet.rejection_reasons() == {}


async def test_the_block_size_in_the_pools_file_takes_precedence() -> None:
    pool = replace(make_pool(f"http://{ONE}", f"http://{TWO}"), block_tokens=16)
    fleet = Fleet(_pools(pool))
    fleet.network.identities = {ONE: identity(), TWO: identity(block_tokens=16)}

    await fleet.pool_members.reconcile()

    assert fleet.names() == [TWO]


async def test_the_older_of_two_versions_stays_until_the_newer_has_a_majority() -> None:
    fleet = _make_fleet(ONE, TWO, THREE)
    await fleet.pool_members.reconcile()
    newer = identity(root="/models/demo-2")

    fleet.network.identities[THREE] = newer
    await fleet.pool_members.reconcile()
    names_before = fleet.names()
    fleet.network.identities[TWO] = newer
    await fleet.pool_members.reconcile()

    assert names_before == [ONE, TWO]
    assert fleet.names() == [TWO, THREE]


async def test_a_replica_without_identity_is_accepted() -> None:
    fleet = _make_fleet(ONE, TWO)
    fleet.network.identities[TWO] = ReplicaIdentity()

    await fleet.pool_members.reconcile()

    assert fleet.names() == [ONE, TWO]


async def test_an_engine_that_starts_after_its_gateway_stays_in_the_pool() -> None:
    """A listed replica that does not respond is left to its circuit breaker."""
    fleet = _make_fleet(ONE, TWO)
    del fleet.network.identities[TWO]

    await fleet.pool_members.reconcile()

    assert fleet.names() == [ONE, TWO]


async def test_a_name_that_does_not_resolve_is_rejected() -> None:
    fleet = _make_fleet(ONE, TWO)
    fleet.network.failing[TWO] = NameNotFound()

    await fleet.pool_members.reconcile()

    assert fleet.names() == [ONE]
    assert fleet.rejection_reasons()[TWO] == MismatchReason.NAME_NOT_FOUND


async def test_a_known_replica_is_not_identified_again() -> None:
    fleet = _make_fleet(ONE, TWO)
    await fleet.pool_members.reconcile()
    fleet.network.requested_replicas.clear()

    await fleet.pool_members.reconcile(checks_all=False)

    assert ONE not in fleet.network.requested_replicas


def _with_allowed_hosts(*hosts: str) -> Fleet:
    """Return a fleet that lists ONE, and to which operators may add replicas at these hosts."""
    pool = replace(make_pool(f"http://{ONE}"), allowed_replica_hosts=hosts)
    fleet = Fleet(_pools(pool))
    fleet.network.identities = {name: identity() for name in (ONE, TWO)}
    return fleet


async def test_an_added_replica_gets_requests_after_identifying_itself() -> None:
    fleet = _with_allowed_hosts("10.0.0.0/24")

    fleet.pool_members.set_added({"demo-fast": [Replica(TWO, f"http://{TWO}")]})
    names_before = fleet.names()
    await fleet.pool_members.reconcile(checks_all=False)

    assert names_before == [ONE]
    assert sorted(fleet.names()) == [ONE, TWO]


async def test_an_added_replica_that_differs_is_rejected() -> None:
    fleet = _with_allowed_hosts("10.0.0.0/24")
    fleet.network.identities[TWO] = identity(token_ids=(5, 6))

    fleet.pool_members.set_added({"demo-fast": [Replica(TWO, f"http://{TWO}")]})
    await fleet.pool_members.reconcile()

    assert fleet.names() == [ONE]
    assert fleet.rejection_reasons()[TWO] == MismatchReason.TOKENIZER


@pytest.mark.parametrize("hosts", [(), ("10.0.1.0/24",), ("*.engines.svc",)])
async def test_a_replica_at_a_host_that_is_not_allowed_gets_no_request(
    hosts: tuple[str, ...],
) -> None:
    fleet = _with_allowed_hosts(*hosts)

    fleet.pool_members.set_added({"demo-fast": [Replica(TWO, f"http://{TWO}")]})
    await fleet.pool_members.reconcile()

    assert fleet.names() == [ONE]
    assert TWO not in fleet.network.requested_replicas
    assert fleet.rejection_reasons()[TWO] == MismatchReason.HOST_NOT_ALLOWED


async def test_a_rejected_replica_that_leaves_is_not_logged_as_accepted() -> None:
    fleet = _with_allowed_hosts()
    fleet.pool_members.set_added({"demo-fast": [Replica(TWO, f"http://{TWO}")]})

    with capture_logs() as logs:
        fleet.pool_members.set_added({})

    assert fleet.rejection_reasons() == {}
    assert logs == []


async def test_kv_events_from_a_host_that_is_not_allowed_are_rejected() -> None:
    fleet = _with_allowed_hosts("10.0.0.0/24")

    added = Replica(TWO, f"http://{TWO}", kv_events="tcp://10.9.9.9:5557")
    fleet.pool_members.set_added({"demo-fast": [added]})
    await fleet.pool_members.reconcile()

    assert fleet.rejection_reasons()[TWO] == MismatchReason.HOST_NOT_ALLOWED


async def test_a_removed_addition_gets_no_requests() -> None:
    fleet = _with_allowed_hosts("10.0.0.0/24")
    fleet.pool_members.set_added({"demo-fast": [Replica(TWO, f"http://{TWO}")]})
    await fleet.pool_members.reconcile()

    fleet.pool_members.set_added({})  # no reconciliation follows

    assert fleet.names() == [ONE]


async def test_the_pools_file_takes_precedence_over_an_addition() -> None:
    fleet = _with_allowed_hosts("10.0.0.0/24")

    addition = Replica(ONE, f"http://{ONE}", kv_events=f"tcp://{TWO}")
    fleet.pool_members.set_added({"demo-fast": [addition]})
    await fleet.pool_members.reconcile()

    (replica,) = fleet.catalog.by_name["demo-fast"].replicas
    assert replica.kv_events is None


async def test_an_addition_of_a_replica_in_the_pools_file_is_not_checked() -> None:
    fleet = _with_allowed_hosts()

    fleet.pool_members.set_added({"demo-fast": [Replica(ONE, f"http://{ONE}")]})
    await fleet.pool_members.reconcile()

    assert fleet.names() == [ONE]
    assert fleet.rejection_reasons() == {}


async def test_an_addition_with_another_scheme_does_not_change_the_pools_file() -> None:
    fleet = _with_allowed_hosts("10.0.0.0/24")

    fleet.pool_members.set_added({"demo-fast": [Replica(ONE, f"https://{ONE}")]})
    await fleet.pool_members.reconcile()

    assert fleet.catalog.by_name["demo-fast"].replicas == (Replica(ONE, f"http://{ONE}"),)


async def test_a_replica_added_during_a_reconciliation_waits_for_its_identification() -> None:
    fleet = _with_allowed_hosts("10.0.0.0/24")
    fleet.network.identities[TWO] = identity(token_ids=(5, 6))
    may_respond = fleet.network.hold_response(ONE)

    reconciliation = asyncio.create_task(fleet.pool_members.reconcile())
    await asyncio.sleep(0)  # the reconciliation begins without TWO
    fleet.pool_members.set_added({"demo-fast": [Replica(TWO, f"http://{TWO}")]})
    may_respond.set()
    await reconciliation

    assert fleet.names() == [ONE]


async def test_a_replica_discovered_in_a_reconciliation_waits_for_its_identification() -> None:
    fleet = _make_discovering_fleet()
    fleet.network.set_addresses("engines", ["10.0.0.1"])
    await fleet.pool_members.reconcile()
    may_respond = fleet.network.hold_response(TWO)
    fleet.network.set_addresses("engines", ["10.0.0.1", "10.0.0.2"])

    reconciliation = asyncio.create_task(fleet.pool_members.reconcile())
    await asyncio.sleep(0.01)  # the reconciliation now waits for the identity of TWO
    fleet.pool_members.set_added({})  # updates the members while the reconciliation runs
    names_before_response = fleet.names()
    may_respond.set()
    await reconciliation

    assert (names_before_response, fleet.names()) == ([ONE], [ONE, TWO])


async def test_reconciliations_run_one_after_the_other() -> None:
    fleet = _with_allowed_hosts("10.0.0.0/24")
    may_respond = fleet.network.hold_response(ONE)

    reconciliations = [asyncio.create_task(fleet.pool_members.reconcile()) for _ in range(2)]
    await asyncio.sleep(0.01)  # the first reconciliation now waits for ONE
    num_requests = fleet.network.requested_replicas.count(ONE)
    may_respond.set()
    await asyncio.gather(*reconciliations)

    assert num_requests == 1


async def test_an_added_replica_must_state_its_identity() -> None:
    fleet = _with_allowed_hosts("10.0.0.0/24")
    fleet.network.identities[TWO] = ReplicaIdentity()

    fleet.pool_members.set_added({"demo-fast": [Replica(TWO, f"http://{TWO}")]})
    await fleet.pool_members.reconcile()

    assert fleet.names() == [ONE]
    assert fleet.rejection_reasons()[TWO] == MismatchReason.NO_IDENTITY


@pytest.mark.parametrize("address", [TWO, "10.0.0.0:8000"], ids=["after ONE", "before ONE"])
async def test_added_replicas_do_not_count_for_the_majority(address: str) -> None:
    """They do not count even if they outnumber ONE when a gateway starts, in any sort order."""
    fleet = _with_allowed_hosts("10.0.0.0/24")
    added_names = [address, THREE]
    for name in added_names:
        fleet.network.identities[name] = identity(root="/models/a")

    fleet.pool_members.set_added(
        {"demo-fast": [Replica(name, f"http://{name}") for name in added_names]}
    )
    await fleet.pool_members.reconcile()

    assert fleet.names() == [ONE]
    assert {fleet.rejection_reasons()[name] for name in added_names} == {MismatchReason.VERSION}


async def test_an_added_replica_is_rejected_once_a_listed_replica_contradicts_it() -> None:
    fleet = _with_allowed_hosts("10.0.0.0/24")
    stated_identity = fleet.network.identities.pop(ONE)
    fleet.network.identities[TWO] = identity(root="/models/a")
    fleet.pool_members.set_added({"demo-fast": [Replica(TWO, f"http://{TWO}")]})
    await fleet.pool_members.reconcile()
    names_before = fleet.names()

    fleet.network.identities[ONE] = stated_identity
    await fleet.pool_members.reconcile()

    assert (names_before, fleet.names()) == ([ONE, TWO], [ONE])


async def test_a_replica_whose_host_name_is_invalid_counts_as_unreachable() -> None:
    fleet = _with_allowed_hosts("10.0.0.0/24")
    fleet.network.failing[TWO] = UnicodeError("label too long")  # of a host name

    fleet.pool_members.set_added({"demo-fast": [Replica(TWO, f"http://{TWO}")]})
    await fleet.pool_members.reconcile()

    assert fleet.names() == [ONE]
    assert fleet.rejection_reasons()[TWO] == MismatchReason.UNREACHABLE
