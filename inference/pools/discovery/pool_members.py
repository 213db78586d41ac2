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
    async def ask(self, replica: Replica, model: str) -> ReplicaIdentity:
        """Raises Unreachable; takes as long as it takes."""


class Resolver(Protocol):
    async def addresses(self, name: str) -> frozenset[str]:
        """IPv4 and IPv6; not empty. Raises Unresolved."""


class _DiscoveredReplicas:
    """Of one pool: whoever may be a replica of it, and what is known of them."""

    def __init__(self, pool: Pool) -> None:
        self.named: Final = pool.replicas
        self.found: tuple[Replica, ...] = ()
        self.added: tuple[Replica, ...] = ()
        self.misplaced: tuple[Replica, ...] = ()  # they were to be added, and may not
        self.told: dict[str, ReplicaIdentity] = {}  # by url
        self.unheard: dict[str, MismatchReason] = {}  # by url: why nothing is told
        self.standard = PoolIdentity()
        self.refused: dict[Replica, IdentityMismatch] = {}

    @property
    def catalogued(self) -> tuple[Replica, ...]:
        """By the catalogue itself, or by the name that it gives."""
        return tuple({each.url: each for each in (*self.named, *self.found)}.values())

    @property
    def every(self) -> tuple[Replica, ...]:
        return (*self.catalogued, *self._besides(self.added))

    @property
    def barred(self) -> tuple[Replica, ...]:
        return self._besides(self.misplaced)

    def has_joined(self, replica: Replica) -> bool:
        """Who was only found or added takes no work before it was asked."""
        is_known = replica in self.named or replica.url in self.told
        return is_known and replica not in self.refused

    def told_by(self, replicas: Iterable[Replica]) -> list[ReplicaIdentity]:
        return [self.told[each.url] for each in replicas if each.url in self.told]

    def _besides(self, wanted: tuple[Replica, ...]) -> tuple[Replica, ...]:
        """What the catalogue says of a replica goes before what an operator says."""
        names = {each.name for each in self.catalogued}
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
        self._round = asyncio.Lock()
        self._token_ids = token_ids
        self._of = {name: _DiscoveredReplicas(pool) for name, pool in pools.by_name.items()}

    @property
    def refused(self) -> list[tuple[str, str, IdentityMismatch]]:
        """Pool, replica and why."""
        return [
            (pool, replica.name, refusal)
            for pool, candidates in self._of.items()
            for replica, refusal in candidates.refused.items()
        ]

    def add(self, added: Mapping[str, Sequence[Replica]]) -> None:
        """By pool: all that operators have added. What is there no more leaves at once, what is new
        is asked in the round that begins now."""
        for name, candidates in self._of.items():
            patterns = self._pools.by_name[name].additions_from
            wanted = tuple(added.get(name, ()))
            candidates.added = tuple(each for each in wanted if _is_within(each, patterns))
            candidates.misplaced = tuple(each for each in wanted if each not in candidates.added)
            self._settle(name)
        self.look()
        if unknown := sorted(added.keys() - self._of.keys()):
            log.warning("added_replica.unknown_pool", pools=unknown)

    def look(self) -> None:
        """There are news: the next round begins now."""
        self._news.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        number = 0
        while True:
            await asyncio.sleep(MIN_ROUND_S)
            if not await self._has_news():
                number += 1
            await self.round(asks_everybody=number == EVERYBODY_EACH)
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

    async def round(self, *, asks_everybody: bool = True) -> None:
        async with self._round, asyncio.TaskGroup() as group:
            for name in self._of:
                group.create_task(self._round_of(name, asks_everybody=asks_everybody))
        self._replicas.keep({replica.url for replica in self._pools.replicas()})

    async def _round_of(self, name: str, *, asks_everybody: bool) -> None:
        candidates, pool = self._of[name], self._pools.by_name[name]
        if pool.discover is not None:
            await self._look_up(candidates, pool.discover, self._resolvers[pool.source])
        async with asyncio.TaskGroup() as group:
            for replica in candidates.every:
                if asks_everybody or self._is_to_be_asked(candidates, replica):
                    group.create_task(self._ask(candidates, replica, pool.model))
        self._settle(name)

    async def _look_up(
        self, candidates: _DiscoveredReplicas, discover: Replica, resolver: Resolver
    ) -> None:
        try:
            async with asyncio.timeout(MAX_RESOLVE_S):
                addresses = await resolver.addresses(discover.host)
        except (ResolutionFailed, TimeoutError) as error:
            log.warning("pool.unresolved", name=discover.host, error=str(error))
            return
        candidates.found = tuple(discover.at(address) for address in sorted(addresses))

    def _is_to_be_asked(self, candidates: _DiscoveredReplicas, replica: Replica) -> bool:
        return (
            replica.url not in candidates.told
            or replica.url in candidates.unheard
            or replica in candidates.refused
            or self._replicas.circuit(replica) is not CircuitState.CLOSED
        )

    async def _ask(self, candidates: _DiscoveredReplicas, replica: Replica, model: str) -> None:
        try:
            async with asyncio.timeout(MAX_ASK_S):
                candidates.told[replica.url] = await self._identities.ask(replica, model)
        except NameNotFound:
            candidates.unheard[replica.url] = MismatchReason.ADDRESS
        except (Unreachable, TimeoutError, ValueError):  # the last: of an address or an answer
            candidates.unheard[replica.url] = MismatchReason.SILENT
        else:
            candidates.unheard.pop(replica.url, None)

    def _settle(self, name: str) -> None:
        """Draws the line through those that there are."""
        candidates, pool = self._of[name], self._pools.by_name[name]
        urls = {replica.url for replica in candidates.every}
        for known in (candidates.told, candidates.unheard):
            for gone in known.keys() - urls:
                del known[gone]
        candidates.standard = derive_pool_identity(
            pool,
            candidates.told_by(candidates.catalogued),
            candidates.standard,
            newcomers=candidates.told_by(candidates.added),
        )
        refused = {
            replica: refusal
            for replica in candidates.every
            if (refusal := self._judged(name, replica)) is not None
        }
        places = ", ".join(pool.additions_from)
        refused |= {
            each: IdentityMismatch(MismatchReason.PLACE, each.host, places)
            for each in candidates.barred
        }
        self._tell(name, candidates.refused, refused)
        candidates.refused = refused
        members = tuple(filter(candidates.has_joined, candidates.every))
        if members != pool.replicas:
            self._change(pool, members)

    def _judged(self, name: str, replica: Replica) -> IdentityMismatch | None:
        candidates, pool = self._of[name], self._pools.by_name[name]
        said = candidates.told.get(replica.url)
        if said is not None:
            if said.roots is None and replica not in candidates.catalogued:
                return IdentityMismatch(MismatchReason.UNSAID, "", pool.model)
            return check_identity(pool, said, candidates.standard, self._token_ids[name])
        reason = candidates.unheard.get(replica.url)
        if reason is MismatchReason.SILENT and replica in candidates.named:
            return None  # its circuit says so
        return None if reason is None else IdentityMismatch(reason)

    def _tell(
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

    def _change(self, pool: Pool, members: Iterable[Replica]) -> None:
        self._pools.has_now(pool.name, members)
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
