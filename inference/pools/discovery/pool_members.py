"""Which replicas a pool has: those that the catalogue names, those that a service's name leads to
(by DNS, or as the Kubernetes API has it) and those that operators add, without the ones whose word
contradicts the pool's (identity.py).

Rules:
1. What a service's name leads to, or an operator adds, takes work once it was asked what it is.
2. What the catalogue names takes work until it contradicts: an engine that starts later than its
   gateway is asked at the next round.
3. A name that leads nowhere, or a resolver that does not answer, takes nothing away.
4. What leaves gets nothing new; what is under way there ends as it would.
5. Nothing is sent to what an operator adds where the catalogue lets none be added. Elsewhere it has
   to say that it serves the pool's model, and has no voice in what the others contradict.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Protocol
from urllib.parse import urlsplit

import structlog

from caret.foundation.egress.host_patterns import matches
from inference.pools.discovery.replica_identity import (
    IdentityMismatch,
    MismatchReason,
    PoolIdentity,
    ReplicaIdentity,
    check_identity,
    derive_pool_identity,
)
from inference.pools.health.circuit_breaker import CircuitState
from inference.pools.health.replica_states import ReplicaStates
from inference.pools.pool_config import DiscoverySource, Pool, PoolConfig, Replica

ROUND_S: Final = 5.0
MIN_ROUND_S: Final = 0.2  # of those that somebody's news begins
EVERYBODY_EACH: Final = 12  # rounds; between them who is new, refused, silent or unwell
MAX_ASK_S: Final = 3.0
MAX_RESOLVE_S: Final = 3.0
log = structlog.get_logger(__name__)


class Unreachable(Exception):
    """Nobody answers there."""


class NameNotFound(Unreachable):
    """The name has no address."""


class ResolutionFailed(Exception):
    """The name's addresses are not known now."""


class IdentityProbe(Protocol):
    async def fetch_identity(self, replica: Replica, model: str) -> ReplicaIdentity:
        """Raises Unreachable; takes as long as it takes."""


class Resolver(Protocol):
    async def resolve(self, name: str) -> frozenset[str]:
        """IPv4 and IPv6; not empty. Raises Unresolved."""


class _DiscoveredReplicas:
    """Of one pool: whoever may be a replica of it, and what is known of them."""

    def __init__(self, pool: Pool) -> None:
        self.named: Final = pool.replicas
        self.found: tuple[Replica, ...] = ()
        self.added: tuple[Replica, ...] = ()
        self.misplaced: tuple[Replica, ...] = ()  # they were to be added, and may not
        self.identities: dict[str, ReplicaIdentity] = {}  # by url
        self.failures: dict[str, MismatchReason] = {}  # by url: why nothing is told
        self.pool_identity = PoolIdentity()
        self.mismatches: dict[Replica, IdentityMismatch] = {}

    @property
    def configured(self) -> tuple[Replica, ...]:
        """By the catalogue itself, or by the name that it gives."""
        return tuple({each.url: each for each in (*self.named, *self.found)}.values())

    @property
    def all_replicas(self) -> tuple[Replica, ...]:
        return (*self.configured, *self._besides(self.added))

    @property
    def barred(self) -> tuple[Replica, ...]:
        return self._besides(self.misplaced)

    def has_joined(self, replica: Replica) -> bool:
        """Who was only found or added takes no work before it was asked."""
        is_known = replica in self.named or replica.url in self.identities
        return is_known and replica not in self.mismatches

    def identities_of(self, replicas: Iterable[Replica]) -> list[ReplicaIdentity]:
        return [self.identities[each.url] for each in replicas if each.url in self.identities]

    def _besides(self, wanted: tuple[Replica, ...]) -> tuple[Replica, ...]:
        """What the catalogue says of a replica goes before what an operator says."""
        names = {each.name for each in self.configured}
        return tuple({each.name: each for each in wanted if each.name not in names}.values())


class PoolMembers:
    """One event loop uses it."""

    def __init__(
        self,
        pools: PoolConfig,
        replicas: ReplicaStates,
        *,
        identities: IdentityProbe,
        resolvers: Mapping[DiscoverySource, Resolver],
        token_ids: Mapping[str, tuple[int, ...]],
    ) -> None:
        """`token_ids`: of the probe's text, by pool."""
        self.changed: list[Callable[[Pool], None]] = []  # called with what a pool has become
        self._pools = pools
        self._replicas = replicas
        self._identities = identities
        self._resolvers = resolvers
        self._news = asyncio.Event()
        self._reconciling = asyncio.Lock()
        self._token_ids = token_ids
        self._discovered = {name: _DiscoveredReplicas(pool) for name, pool in pools.by_name.items()}

    @property
    def rejected_replicas(self) -> list[tuple[str, str, IdentityMismatch]]:
        """Pool, replica and why."""
        return [
            (pool, replica.name, refusal)
            for pool, candidates in self._discovered.items()
            for replica, refusal in candidates.mismatches.items()
        ]

    def add(self, added: Mapping[str, Sequence[Replica]]) -> None:
        """By pool: all that operators have added. What is there no more leaves at once, what is new
        is asked in the round that begins now."""
        for name, candidates in self._discovered.items():
            patterns = self._pools.by_name[name].allowed_replica_hosts
            wanted = tuple(added.get(name, ()))
            candidates.added = tuple(each for each in wanted if _is_within(each, patterns))
            candidates.misplaced = tuple(each for each in wanted if each not in candidates.added)
            self._apply(name)
        self.request_reconcile()
        if unknown := sorted(added.keys() - self._discovered.keys()):
            log.warning("added_replica.unknown_pool", pools=unknown)

    def request_reconcile(self) -> None:
        """There are news: the next round begins now."""
        self._news.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        number = 0
        while True:
            await asyncio.sleep(MIN_ROUND_S)
            if not await self._has_news():
                number += 1
            await self.reconcile(asks_everybody=number == EVERYBODY_EACH)
            number %= EVERYBODY_EACH

    async def _has_news(self) -> bool:
        """At once, or at the end of a round's time."""
        try:
            async with asyncio.timeout(ROUND_S - MIN_ROUND_S):
                await self._news.wait()
        except TimeoutError:
            return False
        self._news.clear()
        return True

    async def reconcile(self, *, asks_everybody: bool = True) -> None:
        async with self._reconciling, asyncio.TaskGroup() as group:
            for name in self._discovered:
                group.create_task(self._reconcile_pool(name, asks_everybody=asks_everybody))
        self._replicas.retain({replica.url for replica in self._pools.list_replicas()})

    async def _reconcile_pool(self, name: str, *, asks_everybody: bool) -> None:
        candidates, pool = self._discovered[name], self._pools.by_name[name]
        if pool.discover is not None:
            await self._resolve(candidates, pool.discover, self._resolvers[pool.source])
        async with asyncio.TaskGroup() as group:
            for replica in candidates.all_replicas:
                if asks_everybody or self._needs_identity(candidates, replica):
                    group.create_task(self._fetch_identity(candidates, replica, pool.model))
        self._apply(name)

    async def _resolve(
        self, candidates: _DiscoveredReplicas, discover: Replica, resolver: Resolver
    ) -> None:
        try:
            async with asyncio.timeout(MAX_RESOLVE_S):
                addresses = await resolver.resolve(discover.host)
        except (ResolutionFailed, TimeoutError) as error:
            log.warning("pool.unresolved", name=discover.host, error=str(error))
            return
        candidates.found = tuple(discover.with_address(address) for address in sorted(addresses))

    def _needs_identity(self, candidates: _DiscoveredReplicas, replica: Replica) -> bool:
        return (
            replica.url not in candidates.identities
            or replica.url in candidates.failures
            or replica in candidates.mismatches
            or self._replicas.get_circuit(replica) is not CircuitState.CLOSED
        )

    async def _fetch_identity(
        self, candidates: _DiscoveredReplicas, replica: Replica, model: str
    ) -> None:
        try:
            async with asyncio.timeout(MAX_ASK_S):
                candidates.identities[replica.url] = await self._identities.fetch_identity(
                    replica, model
                )
        except NameNotFound:
            candidates.failures[replica.url] = MismatchReason.NAME_NOT_FOUND
        except (Unreachable, TimeoutError, ValueError):  # the last: of an address or an answer
            candidates.failures[replica.url] = MismatchReason.UNREACHABLE
        else:
            candidates.failures.pop(replica.url, None)

    def _apply(self, name: str) -> None:
        """Draws the line through those that there are."""
        candidates, pool = self._discovered[name], self._pools.by_name[name]
        urls = {replica.url for replica in candidates.all_replicas}
        for known in (candidates.identities, candidates.failures):
            for gone in known.keys() - urls:
                del known[gone]
        candidates.pool_identity = derive_pool_identity(
            pool,
            candidates.identities_of(candidates.configured),
            candidates.pool_identity,
            newcomers=candidates.identities_of(candidates.added),
        )
        refused = {
            replica: refusal
            for replica in candidates.all_replicas
            if (refusal := self._find_mismatch(name, replica)) is not None
        }
        places = ", ".join(pool.allowed_replica_hosts)
        refused |= {
            each: IdentityMismatch(MismatchReason.HOST_NOT_ALLOWED, each.host, places)
            for each in candidates.barred
        }
        self._log_mismatches(name, candidates.mismatches, refused)
        candidates.mismatches = refused
        members = tuple(filter(candidates.has_joined, candidates.all_replicas))
        if members != pool.replicas:
            self._set_replicas(pool, members)

    def _find_mismatch(self, name: str, replica: Replica) -> IdentityMismatch | None:
        candidates, pool = self._discovered[name], self._pools.by_name[name]
        said = candidates.identities.get(replica.url)
        if said is not None:
            if said.roots is None and replica not in candidates.configured:
                return IdentityMismatch(MismatchReason.NO_IDENTITY, "", pool.model)
            return check_identity(pool, said, candidates.pool_identity, self._token_ids[name])
        reason = candidates.failures.get(replica.url)
        if reason is MismatchReason.UNREACHABLE and replica in candidates.named:
            return None  # its circuit says so
        return None if reason is None else IdentityMismatch(reason)

    def _log_mismatches(
        self,
        pool: str,
        before: Mapping[Replica, IdentityMismatch],
        now: Mapping[Replica, IdentityMismatch],
    ) -> None:
        for replica, refusal in now.items():
            if before.get(replica) != refusal:
                log.error(
                    "replica.refused",
                    pool=pool,
                    replica=replica.name,
                    reason=refusal.reason.value,
                    found=refusal.found,
                    wanted=refusal.wanted,
                )
        for replica in before.keys() - now.keys():
            log.info("replica.accepted", pool=pool, replica=replica.name)

    def _set_replicas(self, pool: Pool, members: Iterable[Replica]) -> None:
        self._pools.set_replicas(pool.name, members)
        now = self._pools.by_name[pool.name]
        before_names = {each.name for each in pool.replicas}
        now_names = {each.name for each in now.replicas}
        log.info(
            "pool.changed",
            pool=pool.name,
            joined=sorted(now_names - before_names),
            left=sorted(before_names - now_names),
        )
        for call in self.changed:
            call(now)


def _is_within(replica: Replica, patterns: Sequence[str]) -> bool:
    """KV events included: they hold prompts, and whoever publishes them is believed."""
    addresses = (replica.url, replica.kv_events, replica.kv_replay)
    hosts = (urlsplit(each).hostname or "" for each in addresses if each is not None)
    return all(matches(host, patterns) for host in hosts)
