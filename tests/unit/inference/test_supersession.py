"""Supersession: a newer request of a user for the same file cancels the older requests.

A gateway tells the other gateways about each request in a claim.
"""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from caret.contracts.policy import Mode, Trigger
from caret.contracts.usage import FinishReason
from inference.gateway.supersession.feed import MAX_QUEUED
from tests.fakes.clock import FakeClock
from tests.fakes.supersession import ClaimingGateway
from tests.fakes.tenants import ALICE, GLOBEX, GUS, make_principal


@pytest.fixture
async def gateway() -> AsyncIterator[ClaimingGateway]:
    gateway = ClaimingGateway(FakeClock())
    yield gateway
    await gateway.cancel_requests()


async def test_a_newer_request_for_the_same_file_supersedes_the_older(
    gateway: ClaimingGateway,
) -> None:
    older, newer = await gateway.begin_request(), await gateway.begin_request()

    assert await gateway.is_over(older)
    assert older.end == FinishReason.SUPERSEDED
    assert not await gateway.is_over(newer)


@pytest.mark.parametrize(
    "other",
    [
        {"path": "b.py"},
        {"repository": "shop"},
        {"mode": Mode.CHAT},
        {"mode": Mode.EDIT},
        {"trigger": Trigger.PREFETCH},
        {"is_warm_up": True},
        {"principal": make_principal(user_id=ALICE)},
        {"principal": make_principal(tenant_id=GLOBEX, user_id=GUS)},
        {"principal": make_principal(tenant_id=GLOBEX)},  # the same user in another tenant
    ],
)
async def test_a_request_with_another_file_mode_trigger_or_user_supersedes_nothing(
    gateway: ClaimingGateway, other: dict[str, Any]
) -> None:
    older = await gateway.begin_request()
    await gateway.begin_request(**other)

    assert not await gateway.is_over(older)


@pytest.mark.parametrize("newer", [Trigger.AUTOMATIC, Trigger.MANUAL, Trigger.PREFETCH])
async def test_any_request_supersedes_a_prefetch(gateway: ClaimingGateway, newer: Trigger) -> None:
    older = await gateway.begin_request(trigger=Trigger.PREFETCH)
    await gateway.begin_request(trigger=newer)

    assert await gateway.is_over(older)


async def test_requests_with_two_keys_of_a_user_supersede_each_other(
    gateway: ClaimingGateway,
) -> None:
    older = await gateway.begin_request(make_principal(key_id="laptop"))
    await gateway.begin_request(make_principal(key_id="desktop"))

    assert await gateway.is_over(older)


async def test_requests_without_a_path_supersede_nothing(gateway: ClaimingGateway) -> None:
    older = await gateway.begin_request(path="")
    await gateway.begin_request(path="")

    assert not await gateway.is_over(older)


async def test_requests_with_a_service_key_supersede_nothing(gateway: ClaimingGateway) -> None:
    older = await gateway.begin_request(make_principal(user_id=None))
    await gateway.begin_request(make_principal(user_id=None))

    assert not await gateway.is_over(older)


async def test_an_older_request_that_is_processed_later_is_superseded(
    gateway: ClaimingGateway,
) -> None:
    newer = await gateway.begin_request()
    gateway.clock.pass_s(-1.0)  # so that the next request has an earlier time
    older = await gateway.begin_request()

    assert await gateway.is_over(older)
    assert older.end == "dropped"  # before it began: its successor was already in flight
    assert not await gateway.is_over(newer)


async def test_setting_the_wall_clock_back_changes_nothing_on_one_gateway(
    gateway: ClaimingGateway,
) -> None:
    older = await gateway.begin_request()
    gateway.clock.shift_wall_clock(by_ms=-3_000)
    newer = await gateway.begin_request()

    assert await gateway.is_over(older)
    assert not await gateway.is_over(newer)


async def test_exactly_one_of_two_simultaneous_requests_continues(gateway: ClaimingGateway) -> None:
    first = await gateway.begin_request()
    gateway.clock.pass_s(-0.001)  # because `begin_request` lets a millisecond pass
    second = await gateway.begin_request()

    assert (await gateway.is_over(first)) != (await gateway.is_over(second))


async def test_ended_requests_are_forgotten(gateway: ClaimingGateway) -> None:
    for _ in range(3):
        await gateway.begin_request()
    await gateway.cancel_requests()

    assert gateway.registry.num_running == 0


async def test_a_newer_claim_of_another_gateway_supersedes_a_local_request(
    gateway: ClaimingGateway,
) -> None:
    other_gateway = ClaimingGateway(gateway.clock)
    local_request = await gateway.begin_request()
    await other_gateway.begin_request()

    for claim in other_gateway.queue.drain():
        gateway.registry.on_remote_claim(claim)

    assert await gateway.is_over(local_request)
    await other_gateway.cancel_requests()


async def test_an_older_claim_of_another_gateway_is_ignored(gateway: ClaimingGateway) -> None:
    other_gateway = ClaimingGateway(gateway.clock)
    await other_gateway.begin_request()
    local_request = await gateway.begin_request()

    for claim in other_gateway.queue.drain():
        gateway.registry.on_remote_claim(claim)

    assert not await gateway.is_over(local_request)
    await other_gateway.cancel_requests()


async def test_an_ending_request_is_cancelled_only_once(gateway: ClaimingGateway) -> None:
    older = await gateway.begin_request()
    (claim,) = gateway.queue.drain()
    later = msgspec.structs.replace(claim, occurred_at_ms=claim.occurred_at_ms + 1)

    gateway.registry.on_remote_claim(later)
    gateway.registry.on_remote_claim(later)

    assert older.task.cancelling() == 1


async def test_a_claim_contains_no_readable_names_and_depends_on_the_secret(
    gateway: ClaimingGateway,
) -> None:
    await gateway.begin_request(path="secrets/plan.py", repository="skunkworks")
    other = ClaimingGateway(gateway.clock, root_secret=bytes(32))
    await other.begin_request(path="secrets/plan.py", repository="skunkworks")

    (claim,), (foreign,) = gateway.queue.drain(), other.queue.drain()

    encoded = msgspec.msgpack.encode(claim)
    assert b"plan" not in encoded
    assert b"skunk" not in encoded
    assert claim.subject != foreign.subject
    await other.cancel_requests()


async def test_the_number_of_queued_claims_is_limited(gateway: ClaimingGateway) -> None:
    for number in range(MAX_QUEUED + 10):
        await gateway.begin_request(path=f"{number}.py")

    assert len(gateway.queue.drain()) == MAX_QUEUED
