"""Fair shares: the requests that a pool near its limit admits."""

import pytest

from caret.contracts.policy import Trigger
from inference.gateway.load_shedding.fair_share import FairShareLimiter
from tests.fakes.tenants import ACME, GLOBEX

LIMIT = 60.0
ASKED = [Trigger.AUTOMATIC, Trigger.MANUAL]


def _fill(*, acme: int = 0, globex: int = 0) -> FairShareLimiter:
    shares = FairShareLimiter()
    for tenant_id, count in ((ACME, acme), (GLOBEX, globex)):
        for _ in range(count):
            shares.acquire(tenant_id)
    return shares


@pytest.mark.parametrize("trigger", ASKED)
def test_a_neighbour_is_let_into_a_pool_that_one_tenant_has_filled(trigger: Trigger) -> None:
    assert _fill(acme=60).can_admit(GLOBEX, trigger, LIMIT)


@pytest.mark.parametrize("trigger", ASKED)
def test_who_holds_more_than_its_part_is_refused(trigger: Trigger) -> None:
    assert not _fill(acme=50, globex=5).can_admit(ACME, trigger, LIMIT)


def test_alone_a_tenant_has_the_whole_pool() -> None:
    assert _fill(acme=59).can_admit(ACME, Trigger.MANUAL, LIMIT)
    assert not _fill(acme=60).can_admit(ACME, Trigger.MANUAL, LIMIT)


def test_below_the_limit_a_tenant_may_have_more_than_its_part() -> None:
    assert _fill(acme=50, globex=1).can_admit(ACME, Trigger.AUTOMATIC, LIMIT)


@pytest.mark.parametrize(
    ("trigger", "is_let_in"), [(Trigger.AUTOMATIC, False), (Trigger.MANUAL, True)]
)
def test_between_tenants_that_hold_their_parts_the_trigger_decides(
    trigger: Trigger, is_let_in: bool
) -> None:
    assert _fill(acme=28, globex=28).can_admit(ACME, trigger, LIMIT) is is_let_in


def test_the_reserve_is_small() -> None:
    shares = _fill(acme=60, globex=2)

    assert not shares.can_admit(GLOBEX, Trigger.MANUAL, LIMIT)


def test_a_neighbours_prefetches_wait_for_easier_times() -> None:
    assert not _fill(acme=60).can_admit(GLOBEX, Trigger.PREFETCH, LIMIT)


def test_what_has_left_counts_no_more() -> None:
    shares = _fill(acme=60)
    for _ in range(60):
        shares.release(ACME)

    assert shares.num_in_flight == 0
    assert shares.can_admit(GLOBEX, Trigger.AUTOMATIC, 1.0)
