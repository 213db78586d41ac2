"""Fair shares decide whose requests a pool near its limit admits."""

import pytest

from caret.contracts.policy import Trigger
from inference.gateway.load_shedding.fair_share import FairShareLimiter
from tests.fakes.tenants import ACME, GLOBEX

LIMIT = 60.0  # requests in flight in the pool
TRIGGERS = [Trigger.AUTOMATIC, Trigger.MANUAL]


def _fill(*, acme: int = 0, globex: int = 0) -> FairShareLimiter:
    """Return a limiter with these numbers of requests in flight."""
    shares = FairShareLimiter()
    for tenant_id, count in ((ACME, acme), (GLOBEX, globex)):
        for _ in range(count):
            shares.acquire(tenant_id)
    return shares


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_a_tenant_is_admitted_to_a_pool_filled_by_another(trigger: Trigger) -> None:
    assert _fill(acme=60).can_admit(GLOBEX, trigger, LIMIT)


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_a_tenant_above_its_share_is_rejected(trigger: Trigger) -> None:
    assert not _fill(acme=50, globex=5).can_admit(ACME, trigger, LIMIT)


def test_a_single_tenant_may_use_the_whole_pool() -> None:
    assert _fill(acme=59).can_admit(ACME, Trigger.MANUAL, LIMIT)
    assert not _fill(acme=60).can_admit(ACME, Trigger.MANUAL, LIMIT)


def test_below_the_limit_a_tenant_may_exceed_its_share() -> None:
    assert _fill(acme=50, globex=1).can_admit(ACME, Trigger.AUTOMATIC, LIMIT)


@pytest.mark.parametrize(
    ("trigger", "is_admitted"), [(Trigger.AUTOMATIC, False), (Trigger.MANUAL, True)]
)
def test_near_the_limit_tenants_within_their_shares_may_only_trigger_manually(
    trigger: Trigger, is_admitted: bool
) -> None:
    # Each tenant's share is 30 requests. Automatic requests may fill nine tenths of the limit.
    assert _fill(acme=28, globex=28).can_admit(ACME, trigger, LIMIT) is is_admitted


def test_a_tenant_below_its_share_is_rejected_once_the_reserve_is_used() -> None:
    shares = _fill(acme=60, globex=2)  # the reserve is one request for each tenant

    assert not shares.can_admit(GLOBEX, Trigger.MANUAL, LIMIT)


def test_prefetches_are_not_admitted_to_a_full_pool() -> None:
    assert not _fill(acme=60).can_admit(GLOBEX, Trigger.PREFETCH, LIMIT)


def test_released_requests_no_longer_count() -> None:
    shares = _fill(acme=60)
    for _ in range(60):
        shares.release(ACME)

    assert shares.num_in_flight == 0
    assert shares.can_admit(GLOBEX, Trigger.AUTOMATIC, limit=1.0)
