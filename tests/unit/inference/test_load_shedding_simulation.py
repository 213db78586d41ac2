"""The behaviour of a pool under load over minutes, in simulated time (tests.fakes.queueing)."""

from collections.abc import Callable

import pytest

from caret.contracts.policy import Trigger
from caret.foundation.ids import TenantId
from tests.fakes.queueing import (
    TARGET_S,
    OfferedRequest,
    QueueModel,
    first_tokens_s,
    quantile,
    shed_share,
)
from tests.fakes.tenants import GLOBEX, make_principal

CAPACITY = 100.0  # requests a second
BURST_S, CALM_S, END_S = 10.0, 70.0, 90.0  # the burst lasts from BURST_S to CALM_S


def _burst(now_s: float) -> float:
    """Return the rate of requests at this time."""
    return 3 * CAPACITY if BURST_S <= now_s < CALM_S else 0.5 * CAPACITY


def _run(rate: Callable[[float], float], *, until_s: float = END_S, **fields: object) -> QueueModel:
    model = QueueModel(rate=rate, **fields)  # type: ignore[arg-type]  # of several types
    assert model.capacity == CAPACITY
    model.run(until_s)
    return model


@pytest.fixture(scope="module", params=[1, 2])  # two seeds
def burst_model(request: pytest.FixtureRequest) -> QueueModel:
    return _run(_burst, seed=request.param)


def test_hardly_any_request_is_shed_at_half_of_the_capacity() -> None:
    model = _run(lambda _: 0.5 * CAPACITY, until_s=40)

    assert shed_share(model.offered) < 0.02


def test_requests_admitted_in_a_burst_meet_the_target(burst_model: QueueModel) -> None:
    times = first_tokens_s(burst_model.between(BURST_S, CALM_S))

    assert quantile(times, 0.99) <= TARGET_S


def test_the_capacity_is_used_in_a_burst(burst_model: QueueModel) -> None:
    times = first_tokens_s(burst_model.between(BURST_S, CALM_S))

    assert len(times) > 0.85 * CAPACITY * (CALM_S - BURST_S)


def test_hardly_any_request_is_shed_or_late_from_five_seconds_after_a_burst_on(
    burst_model: QueueModel,
) -> None:
    after = burst_model.between(CALM_S + 5, END_S)

    assert shed_share(after) < 0.03
    assert quantile(first_tokens_s(after), 0.99) <= TARGET_S


def test_without_shedding_the_same_burst_misses_the_target() -> None:
    model = QueueModel(rate=_burst)
    model.load_shedder.limit.floor = 10**6  # a pool that admits everything
    model.load_shedder.limit.value = 1e6
    model.run(BURST_S + 5)

    assert quantile(first_tokens_s(model.between(BURST_S, BURST_S + 5)), 0.5) > 10 * TARGET_S


def test_at_least_half_of_the_first_requests_of_a_burst_meet_the_target(
    burst_model: QueueModel,
) -> None:
    times = first_tokens_s(burst_model.between(BURST_S, BURST_S + 5))

    assert quantile(times, 0.5) <= TARGET_S
    assert times[-1] <= 5 * TARGET_S  # the slowest request


def test_a_gateway_that_starts_in_a_burst_finds_the_limit_within_two_seconds() -> None:
    model = _run(lambda _: 3 * CAPACITY, until_s=30)

    assert quantile(first_tokens_s(model.between(2, 30)), 0.99) <= TARGET_S


def test_prefetches_are_shed_first_then_automatic_requests_then_manual_ones() -> None:
    model = _run(lambda _: 1.5 * CAPACITY, until_s=30, triggers=tuple(Trigger))

    def share(trigger: Trigger) -> float:
        return shed_share(_with_trigger(model, trigger))

    assert share(Trigger.PREFETCH) > 0.6
    assert share(Trigger.PREFETCH) > share(Trigger.AUTOMATIC) > share(Trigger.MANUAL)
    assert share(Trigger.MANUAL) < 0.3


def test_the_busiest_tenant_is_shed_before_others() -> None:
    busy, neighbour = make_principal(), make_principal(tenant_id=GLOBEX)
    model = _run(lambda _: 3 * CAPACITY, until_s=30, tenants=(*[busy] * 9, neighbour))

    settled = model.between(2, 30)
    assert shed_share([request for request in settled if request.tenant is neighbour]) < 0.3
    assert shed_share([request for request in settled if request.tenant is busy]) > 0.65
    assert quantile(first_tokens_s(settled), 0.99) <= TARGET_S


def test_many_small_tenants_together_meet_the_target() -> None:
    tenants = [make_principal(tenant_id=TenantId(str(number))) for number in range(300)]
    model = _run(_burst, tenants=tenants)

    times = first_tokens_s(model.between(BURST_S, CALM_S))
    assert quantile(times, 0.99) <= TARGET_S
    assert len(times) > 0.85 * CAPACITY * (CALM_S - BURST_S)


def test_slower_replicas_are_detected_within_seconds() -> None:
    model = _run(lambda _: 0.9 * CAPACITY, until_s=20)
    model.service_s = 0.04  # twice as long, so that half of the capacity remains
    model.run(60)

    assert quantile(first_tokens_s(model.between(25, 60)), 0.99) <= 1.5 * TARGET_S
    assert shed_share(model.between(25, 60)) > 0.3


def _with_trigger(model: QueueModel, trigger: Trigger) -> list[OfferedRequest]:
    return [request for request in model.offered if request.trigger is trigger]
