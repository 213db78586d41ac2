"""Data that Redis lacks, and its repair."""

import pytest

from caret.foundation.ids import TenantId
from tenants.fleet.snapshots.publisher import (
    PublishedState,
    RepairReason,
    SnapshotRepair,
    plan_repairs,
)

ACME, GLOBEX = TenantId("acme"), TenantId("globex")


def held(version: int | None, *, with_snapshot: bool = True) -> PublishedState:
    return PublishedState(
        versions={} if version is None else {ACME: version},
        snapshots=frozenset({ACME} if with_snapshot and version is not None else ()),
    )


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (held(5), None),
        (held(4), SnapshotRepair(RepairReason.UNPUBLISHED, None)),
        (held(None), SnapshotRepair(RepairReason.LOST, None)),
        (held(9), SnapshotRepair(RepairReason.AHEAD, 9)),
        (held(5, with_snapshot=False), SnapshotRepair(RepairReason.CORRUPT, 5)),
        (held(4, with_snapshot=False), SnapshotRepair(RepairReason.CORRUPT, 4)),
    ],
)
def test_what_redis_holds_of_version_five(
    found: PublishedState, expected: SnapshotRepair | None
) -> None:
    assert plan_repairs({ACME: 5}, found).get(ACME) == expected


def test_a_tenant_in_order_is_left_alone_beside_one_that_is_not() -> None:
    assert set(plan_repairs({ACME: 5, GLOBEX: 1}, held(5))) == {GLOBEX}
