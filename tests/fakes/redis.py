"""The part of Redis that the gateway's feeds use: hashes and counters."""

from collections.abc import Sequence

from caret.contracts.added_replicas import ADDITIONS, ADDITIONS_VERSION
from caret.contracts.drained_replicas import DRAINS, DRAINS_VERSION
from caret.contracts.snapshot import (
    CHANGE_COUNTER,
    SNAPSHOTS,
    VERSIONS,
    TenantSnapshot,
    encode_snapshot,
)


class FakeRedis:
    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        names = (SNAPSHOTS, VERSIONS, DRAINS, ADDITIONS)
        self.hashes: dict[str, dict[bytes, bytes]] = {name: {} for name in names}
        # Counts all calls of `hgetall`, with which the snapshot feed reads the versions.
        self.num_reads_of_versions = 0

    def publish_snapshot(self, snapshot: TenantSnapshot) -> None:
        self.publish_bytes(snapshot.tenant_id, snapshot.version, encode_snapshot(snapshot))

    def publish_bytes(self, tenant_id: str, version: int, data: bytes) -> None:
        """Publish any bytes as a snapshot, valid or not."""
        self.hashes[SNAPSHOTS][tenant_id.encode()] = data
        self.hashes[VERSIONS][tenant_id.encode()] = str(version).encode()
        self.values[CHANGE_COUNTER] = str(int(self.values.get(CHANGE_COUNTER, b"0")) + 1).encode()

    def repair_snapshot(self, snapshot: TenantSnapshot) -> None:
        """Replace a damaged snapshot without announcing the change."""
        self.hashes[SNAPSHOTS][snapshot.tenant_id.encode()] = encode_snapshot(snapshot)

    def drain(self, *names: str) -> None:
        """Set the drained replicas to exactly these."""
        self.hashes[DRAINS] = {name.encode(): b"a value that is not read" for name in names}
        self.values[DRAINS_VERSION] = str(int(self.values.get(DRAINS_VERSION, b"0")) + 1).encode()

    def add(self, **entries: bytes) -> None:
        """Set the added replicas to exactly these."""
        self.hashes[ADDITIONS] = {name.encode(): data for name, data in entries.items()}
        version = int(self.values.get(ADDITIONS_VERSION, b"0")) + 1
        self.values[ADDITIONS_VERSION] = str(version).encode()

    def lose_everything(self) -> None:
        self.values.clear()
        for hash_ in self.hashes.values():
            hash_.clear()

    async def get(self, key: str) -> bytes | None:
        return self.values.get(key)

    async def exists(self, key: str) -> int:
        return int(key in self.values)

    async def hgetall(self, key: str) -> dict[bytes, bytes]:
        self.num_reads_of_versions += 1
        return dict(self.hashes[key])

    async def hkeys(self, key: str) -> list[bytes]:
        return list(self.hashes[key])

    async def hmget(self, key: str, names: Sequence[str]) -> list[bytes | None]:
        return [self.hashes[key].get(name.encode()) for name in names]
