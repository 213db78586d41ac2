"""What Redis lacks, and what to do about it."""

import pytest

from caret.foundation.ids import TenantId
from tenants.fleet.snapshots.publisher import Held, Repair, RepairReason, plan_repairs

ACME, GLOBEX = TenantId("acme"), TenantId("globex")


def held(version: int | None, *, with_snapshot: bool = True) -> Held:
    return Held(
        versions={} if version is None else {ACME: version},
        snapshots=frozenset({ACME} if with_snapshot and version is not None else ()),
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (held(5), None),
        (held(4), Repair(RepairReason.UNPUBLISHED, None)),
        (held(None), Repair(RepairReason.LOST, None)),
        (held(9), Repair(RepairReason.AHEAD, 9)),
        (held(5, with_snapshot=False), Repair(RepairReason.TORN, 5)),
        (held(4, with_snapshot=False), Repair(RepairReason.TORN, 4)),
    ],
)
def test_what_redis_holds_of_version_five(found: Held, expected: Repair | None) -> None:
    assert plan_repairs({ACME: 5}, found).get(ACME) == expected


def test_a_tenant_in_order_is_left_alone_beside_one_that_is_not() -> None:
    assert set(plan_repairs({ACME: 5, GLOBEX: 1}, held(5))) == {GLOBEX}
