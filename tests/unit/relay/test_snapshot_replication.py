"""The relay trusts the home region only while its Redis has data."""

from unittest.mock import AsyncMock

from caret.contracts.snapshot import HOME_LAST_SEEN
from caret.relay.snapshot_replication import SnapshotReplicator


async def test_a_home_region_that_has_lost_its_data_does_not_count_as_reached() -> None:
    home_redis, local_redis = AsyncMock(), AsyncMock()
    # The counter of changes at the first synchronization; then Redis has no data.
    home_redis.get.side_effect = [b"7", None]
    home_redis.hgetall.return_value = local_redis.hgetall.return_value = {}
    local_redis.exists.return_value = 0  # HOME_LAST_SEEN does not exist yet
    replicator = SnapshotReplicator(home_redis, local_redis, region="east", max_disconnect_s=60)

    await replicator.sync()
    await replicator.sync()

    # Only the first synchronization has marked the home region as seen.
    local_redis.set.assert_awaited_once_with(HOME_LAST_SEEN, "1", ex=60)
