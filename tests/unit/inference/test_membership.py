"""The membership of replicas in a pool, over a fake network."""

import asyncio
from dataclasses import replace

import pytest

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


def _discovering() -> Fleet:
    fleet = Fleet(_pools(replace(make_pool(), replicas=(), discover=ENGINES)))
    fleet.network.said = {name: identity() for name in (ONE, TWO, THREE)}
    return fleet


def _listed(*names: str) -> Fleet:
    fleet = Fleet(_pools(make_pool(*(f"http://{name}" for name in names))))
    fleet.network.said = {name: identity() for name in names}
    return fleet


async def test_each_address_of_the_name_is_a_replica() -> None:
    fleet = _discovering()
    fleet.network.leads_to("engines", ["10.0.0.2", "10.0.0.1"])

    await fleet.membership.reconcile()

    assert fleet.names() == [ONE, TWO]


async def test_who_joins_takes_work_once_it_has_said_what_it_is() -> None:
    fleet = _discovering()
    fleet.network.leads_to("engines", ["10.0.0.1", "10.0.0.2"])
    told = fleet.network.said.pop(TWO)

    await fleet.membership.reconcile()
    unheard = (fleet.names(), fleet.reasons()[TWO])
    fleet.network.said[TWO] = told
    await fleet.membership.reconcile(asks_everybody=False)

    assert unheard == ([ONE], MismatchReason.UNREACHABLE)
    assert fleet.names() == [ONE, TWO]
    assert TWO not in fleet.reasons()


async def test_who_leaves_gets_nothing_new_and_ends_what_it_has() -> None:
    fleet = _discovering()
    fleet.network.leads_to("engines", ["10.0.0.1", "10.0.0.2"])
    await fleet.membership.reconcile()
    leaving = fleet.catalog.by_name["demo-fast"].replicas[1]

    with fleet.replicas.attempt(leaving):
        fleet.network.leads_to("engines", ["10.0.0.1"])
        await fleet.membership.reconcile()
        under_way = fleet.replicas.num_in_flight(leaving)

    assert fleet.names() == [ONE]
    assert under_way == 1


async def test_a_resolver_that_does_not_answer_takes_nobody_away() -> None:
    fleet = _discovering()
    fleet.network.leads_to("engines", ["10.0.0.1", "10.0.0.2"])
    await fleet.membership.reconcile()

    fleet.network.names.clear()
    await fleet.membership.reconcile()

    assert fleet.names() == [ONE, TWO]


async def test_whoever_reckons_with_a_pools_size_is_told_of_a_change_once() -> None:
    fleet = _discovering()
    sizes: list[int] = []
    fleet.membership.changed.append(lambda pool: sizes.append(len(pool.replicas)))
    fleet.network.leads_to("engines", ["10.0.0.1", "10.0.0.2"])

    await fleet.membership.reconcile()
    await fleet.membership.reconcile()

    assert sizes == [2]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (identity(model="other"), MismatchReason.MODEL),
        (identity(root="/models/demo-2"), MismatchReason.VERSION),
        (identity(context=2048), MismatchReason.CONTEXT_LENGTH),
        (identity(token_ids=(5, 6)), MismatchReason.TOKENIZER),
        (identity(token_ids=TOKEN_IDS[::-1]), MismatchReason.TOKENIZER),
        (identity(block_tokens=16), MismatchReason.BLOCK_SIZE),
    ],
)
async def test_who_contradicts_the_others_is_refused_by_name(
    said: ReplicaIdentity, reason: MismatchReason
) -> None:
    fleet = _listed(ONE, TWO, THREE)
    fleet.network.said[TWO] = said

    await fleet.membership.reconcile()

    assert fleet.names() == [ONE, THREE]
    assert fleet.reasons().get(TWO) == reason


async def test_who_has_mended_its_ways_is_taken_back() -> None:
    fleet = _listed(ONE, TWO, THREE)
    fleet.network.said[TWO] = identity(block_tokens=16)
    await fleet.membership.reconcile()

    fleet.network.said[TWO] = identity()
    await fleet.membership.reconcile(asks_everybody=False)

    assert fleet.names() == [ONE, TWO, THREE]
    assert fleet.reasons() == {}


async def test_the_catalogues_word_on_blocks_goes_before_the_replicas() -> None:
    pool = replace(make_pool(f"http://{ONE}", f"http://{TWO}"), block_tokens=16)
    fleet = Fleet(_pools(pool))
    fleet.network.said = {ONE: identity(), TWO: identity(block_tokens=16)}

    await fleet.membership.reconcile()

    assert fleet.names() == [TWO]


async def test_of_two_versions_the_older_stays_until_the_newer_has_more() -> None:
    fleet = _listed(ONE, TWO, THREE)
    await fleet.membership.reconcile()
    newer = identity(root="/models/demo-2")

    fleet.network.said[THREE] = newer
    await fleet.membership.reconcile()
    before = fleet.names()
    fleet.network.said[TWO] = newer
    await fleet.membership.reconcile()

    assert before == [ONE, TWO]
    assert fleet.names() == [TWO, THREE]


async def test_who_does_not_know_the_questions_is_no_contradiction() -> None:
    fleet = _listed(ONE, TWO)
    fleet.network.said[TWO] = ReplicaIdentity()

    await fleet.membership.reconcile()

    assert fleet.names() == [ONE, TWO]


async def test_an_engine_that_starts_later_than_its_gateway_keeps_its_place() -> None:
    fleet = _listed(ONE, TWO)
    del fleet.network.said[TWO]

    await fleet.membership.reconcile()

    assert fleet.names() == [ONE, TWO]


async def test_a_name_that_leads_nowhere_is_refused() -> None:
    fleet = _listed(ONE, TWO)
    fleet.network.failing[TWO] = NameNotFound()

    await fleet.membership.reconcile()

    assert fleet.names() == [ONE]
    assert fleet.reasons()[TWO] == MismatchReason.NAME_NOT_FOUND


async def test_who_is_known_is_not_asked_each_time() -> None:
    fleet = _listed(ONE, TWO)
    await fleet.membership.reconcile()
    fleet.network.asked.clear()

    await fleet.membership.reconcile(asks_everybody=False)

    assert ONE not in fleet.network.asked


def _growing(*places: str) -> Fleet:
    pool = replace(make_pool(f"http://{ONE}"), allowed_replica_hosts=places)
    fleet = Fleet(_pools(pool))
    fleet.network.said = {name: identity() for name in (ONE, TWO)}
    return fleet


async def test_what_an_operator_adds_takes_work_once_it_was_asked() -> None:
    fleet = _growing("10.0.0.0/24")

    fleet.membership.add({"demo-fast": [Replica(TWO, f"http://{TWO}")]})
    before = fleet.names()
    await fleet.membership.reconcile(asks_everybody=False)

    assert before == [ONE]
    assert sorted(fleet.names()) == [ONE, TWO]


async def test_what_an_operator_adds_and_contradicts_is_refused() -> None:
    fleet = _growing("10.0.0.0/24")
    fleet.network.said[TWO] = identity(token_ids=(5, 6))

    fleet.membership.add({"demo-fast": [Replica(TWO, f"http://{TWO}")]})
    await fleet.membership.reconcile()

    assert fleet.names() == [ONE]
    assert fleet.reasons()[TWO] == MismatchReason.TOKENIZER


@pytest.mark.parametrize("places", [(), ("10.0.1.0/24",), ("*.engines.svc",)])
async def test_nothing_is_sent_where_the_catalogue_lets_none_be_added(
    places: tuple[str, ...],
) -> None:
    fleet = _growing(*places)

    fleet.membership.add({"demo-fast": [Replica(TWO, f"http://{TWO}")]})
    await fleet.membership.reconcile()

    assert fleet.names() == [ONE]
    assert TWO not in fleet.network.asked
    assert fleet.reasons()[TWO] == MismatchReason.HOST_NOT_ALLOWED


async def test_kv_events_from_elsewhere_are_no_better() -> None:
    fleet = _growing("10.0.0.0/24")

    added = Replica(TWO, f"http://{TWO}", kv_events="tcp://10.9.9.9:5557")
    fleet.membership.add({"demo-fast": [added]})
    await fleet.membership.reconcile()

    assert fleet.reasons()[TWO] == MismatchReason.HOST_NOT_ALLOWED


async def test_what_is_taken_out_again_gets_nothing_more() -> None:
    fleet = _growing("10.0.0.0/24")
    fleet.membership.add({"demo-fast": [Replica(TWO, f"http://{TWO}")]})
    await fleet.membership.reconcile()

    fleet.membership.add({})  # without a round

    assert fleet.names() == [ONE]


async def test_the_catalogues_word_on_a_replica_goes_before_an_operators() -> None:
    fleet = _growing("10.0.0.0/24")

    fleet.membership.add({"demo-fast": [Replica(ONE, f"http://{ONE}", kv_events=f"tcp://{TWO}")]})
    await fleet.membership.reconcile()

    (one,) = fleet.catalog.by_name["demo-fast"].replicas
    assert one.kv_events is None


async def test_one_that_was_added_before_the_catalogue_named_it_stays_when_its_place_is_gone() -> (
    None
):
    fleet = _growing()

    fleet.membership.add({"demo-fast": [Replica(ONE, f"http://{ONE}")]})
    await fleet.membership.reconcile()

    assert fleet.names() == [ONE]
    assert fleet.reasons() == {}


async def test_another_way_to_write_what_the_catalogue_names_changes_nothing() -> None:
    fleet = _growing("10.0.0.0/24")

    fleet.membership.add({"demo-fast": [Replica(ONE, f"https://{ONE}")]})
    await fleet.membership.reconcile()

    assert fleet.catalog.by_name["demo-fast"].replicas == (Replica(ONE, f"http://{ONE}"),)


async def test_what_is_added_while_a_round_is_on_waits_until_it_was_asked() -> None:
    fleet = _growing("10.0.0.0/24")
    fleet.network.said[TWO] = identity(token_ids=(5, 6))
    asking = fleet.network.holds(ONE)

    round_ = asyncio.create_task(fleet.membership.reconcile())
    await asyncio.sleep(0)
    fleet.membership.add({"demo-fast": [Replica(TWO, f"http://{TWO}")]})
    asking.set()
    await round_

    assert fleet.names() == [ONE]


async def test_what_is_found_while_a_round_is_on_waits_likewise() -> None:
    fleet = _discovering()
    fleet.network.leads_to("engines", ["10.0.0.1"])
    await fleet.membership.reconcile()
    asking = fleet.network.holds(TWO)
    fleet.network.leads_to("engines", ["10.0.0.1", "10.0.0.2"])

    round_ = asyncio.create_task(fleet.membership.reconcile())
    await asyncio.sleep(0.01)
    fleet.membership.add({})  # settles the members while the round runs
    meanwhile = fleet.names()
    asking.set()
    await round_

    assert (meanwhile, fleet.names()) == ([ONE], [ONE, TWO])


async def test_one_round_waits_for_the_other() -> None:
    fleet = _growing("10.0.0.0/24")
    asking = fleet.network.holds(ONE)

    rounds = [asyncio.create_task(fleet.membership.reconcile()) for _ in range(2)]
    await asyncio.sleep(0.01)
    num_asked = fleet.network.asked.count(ONE)
    asking.set()
    await asyncio.gather(*rounds)

    assert num_asked == 1


async def test_what_is_added_says_that_it_serves_the_pools_model() -> None:
    fleet = _growing("10.0.0.0/24")
    fleet.network.said[TWO] = ReplicaIdentity()

    fleet.membership.add({"demo-fast": [Replica(TWO, f"http://{TWO}")]})
    await fleet.membership.reconcile()

    assert fleet.names() == [ONE]
    assert fleet.reasons()[TWO] == MismatchReason.NO_IDENTITY


@pytest.mark.parametrize("address", [TWO, "10.0.0.0:8000"])
async def test_what_is_added_has_no_voice(address: str) -> None:
    """Neither in a pool of one, nor as the majority, nor in a gateway that has just started."""
    fleet = _growing("10.0.0.0/24")
    others = [address, THREE]
    for name in others:
        fleet.network.said[name] = identity(root="/models/a")

    fleet.membership.add({"demo-fast": [Replica(name, f"http://{name}") for name in others]})
    await fleet.membership.reconcile()

    assert fleet.names() == [ONE]
    assert {fleet.reasons()[name] for name in others} == {MismatchReason.VERSION}


async def test_what_is_added_is_outvoted_by_whom_the_catalogue_names_once_it_speaks() -> None:
    fleet = _growing("10.0.0.0/24")
    told = fleet.network.said.pop(ONE)
    fleet.network.said[TWO] = identity(root="/models/a")
    fleet.membership.add({"demo-fast": [Replica(TWO, f"http://{TWO}")]})
    await fleet.membership.reconcile()
    before = fleet.names()

    fleet.network.said[ONE] = told
    await fleet.membership.reconcile()

    assert (before, fleet.names()) == ([ONE, TWO], [ONE])


async def test_an_answer_that_cannot_be_read_is_no_answer_and_ends_nothing() -> None:
    fleet = _growing("10.0.0.0/24")
    fleet.network.failing[TWO] = UnicodeError("label too long")

    fleet.membership.add({"demo-fast": [Replica(TWO, f"http://{TWO}")]})
    await fleet.membership.reconcile()

    assert fleet.names() == [ONE]
    assert fleet.reasons()[TWO] == MismatchReason.UNREACHABLE
