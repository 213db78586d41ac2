"""Replicas that report the identity that a test gives them, and a name resolver."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from inference.pools.discovery.pool_members import PoolMembers, ResolutionFailed, Unreachable
from inference.pools.discovery.replica_identity import ReplicaIdentity
from inference.pools.health.replica_states import ReplicaStates
from inference.pools.pool_config import DiscoverySource, Pool, Replica
from tests.fakes.clock import FakeClock
from tests.fakes.pools import make_pools

TOKEN_IDS = (5, 6, 7)  # the tokens of the text with which tokenizers are compared


def identity(
    *,
    model: str = "demo",
    root: str | None = "/models/demo",
    max_context_tokens: int | None = 4096,
    token_ids: tuple[int, ...] | None = TOKEN_IDS,
    block_tokens: int | None = 32,
) -> ReplicaIdentity:
    return ReplicaIdentity(
        roots={model: root},
        max_context_tokens={model: max_context_tokens},
        token_ids=token_ids,
        block_tokens=block_tokens,
    )


@dataclass
class FakeNetwork:
    """Resolves names to addresses, and returns the identities of replicas."""

    identities: dict[str, ReplicaIdentity] = field(default_factory=dict)  # by the replica's name
    failing: dict[str, Exception] = field(default_factory=dict)  # by the replica's name
    addresses: dict[str, frozenset[str]] = field(default_factory=dict)  # by the name to resolve
    requested_replicas: list[str] = field(default_factory=list)  # names, in order of the requests
    release_events: dict[str, asyncio.Event] = field(default_factory=dict)  # by the replica's name

    async def fetch_identity(self, replica: Replica, model: str) -> ReplicaIdentity:
        self.requested_replicas.append(replica.name)
        if replica.name in self.release_events:
            await self.release_events[replica.name].wait()
        if replica.name in self.failing:
            raise self.failing[replica.name]
        if replica.name not in self.identities:
            raise Unreachable
        return self.identities[replica.name]

    def hold_response(self, name: str) -> asyncio.Event:
        """Delay the replica's response until the returned event is set."""
        return self.release_events.setdefault(name, asyncio.Event())

    async def resolve(self, name: str) -> frozenset[str]:
        if not self.addresses.get(name):
            raise ResolutionFailed("planted")
        return self.addresses[name]

    def set_addresses(self, name: str, addresses: Iterable[str]) -> None:
        self.addresses[name] = frozenset(addresses)


@dataclass
class Fleet:
    """The members of `pools`, with a fake network and a fake clock."""

    pools: tuple[Pool, ...]
    network: FakeNetwork = field(default_factory=FakeNetwork)

    def __post_init__(self) -> None:
        self.catalog = make_pools(*self.pools)
        self.replicas = ReplicaStates(FakeClock())
        self.pool_members = PoolMembers(
            self.catalog,
            self.replicas,
            identities=self.network,
            resolvers=dict.fromkeys(DiscoverySource, self.network),
            token_ids={pool.name: TOKEN_IDS for pool in self.catalog.by_name.values()},
        )

    def names(self, pool: str = "demo-fast") -> list[str]:
        return [replica.name for replica in self.catalog.by_name[pool].replicas]

    def rejection_reasons(self) -> dict[str, str]:
        return {
            replica: mismatch.reason for _, replica, mismatch in self.pool_members.rejected_replicas
        }
