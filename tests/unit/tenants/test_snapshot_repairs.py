"""The repair of snapshots that are missing, outdated or damaged in Redis."""

import pytest

from caret.foundation.ids import TenantId
from tenants.fleet.snapshots.publisher import (
    PublishedState,
    RepairReason,
    SnapshotRepair,
    plan_repairs,
)

ACME, GLOBEX = TenantId("acme"), TenantId("globex")


def published(version: int | None, *, with_snapshot: bool = True) -> PublishedState:
    """Return a state of Redis with this version of ACME's snapshot; None: neither is in Redis.

    With `with_snapshot=False`, Redis has the version, but the snapshot is missing or damaged.
    """
    return PublishedState(
        versions={} if version is None else {ACME: version},
        snapshots=frozenset({ACME} if with_snapshot and version is not None else ()),
    )


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (published(5), None),
        (published(4), SnapshotRepair(RepairReason.UNPUBLISHED, None)),
        (published(None), SnapshotRepair(RepairReason.LOST, None)),
        (published(9), SnapshotRepair(RepairReason.AHEAD, 9)),
        (published(5, with_snapshot=False), SnapshotRepair(RepairReason.CORRUPT, 5)),
        (published(4, with_snapshot=False), SnapshotRepair(RepairReason.CORRUPT, 4)),
    ],
)
def test_a_repair_depends_on_the_state_of_redis(
    state: PublishedState, expected: SnapshotRepair | None
) -> None:
    # The database has version 5. The number in a repair is the version in Redis, which the repair
    # must exceed; None: it publishes version 5.
    assert plan_repairs({ACME: 5}, state).get(ACME) == expected


def test_only_the_tenant_whose_snapshot_is_missing_is_repaired() -> None:
    assert set(plan_repairs({ACME: 5, GLOBEX: 1}, published(5))) == {GLOBEX}
