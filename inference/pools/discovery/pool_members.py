"""The members of each pool: the replicas that may serve its requests.

Replicas come from the configuration, from service names (resolved by DNS or the Kubernetes API),
and from operators. Replicas whose identity contradicts the pool are rejected (`replica_identity`).
A round resolves the service names, checks identities and updates the members.

Rules:
1. A replica that was discovered, or added by an operator, gets requests after its identity check.
2. A configured replica gets requests unless its identity contradicts the pool's. Until its identity
   is known, it gets no requests while its host name has no address. If its engine starts after the
   gateway, the next round checks the identity.
3. If a name has no addresses, or the resolver does not answer, the known replicas remain.
4. A replica that leaves gets no new requests. Its requests in flight continue.
5. Operators can add replicas only at addresses that the configuration allows; nothing is sent to
   other addresses. An added replica must state that it serves the pool's model. Its statement about
   a property counts for the pool's common identity only if no configured or discovered replica
   states that property.
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

ROUND_S: Final = 5.0  # from one round to the next
MIN_ROUND_S: Final = 0.2  # if changes trigger rounds
# Every twelfth round checks the identity of all replicas. The other rounds skip replicas that were
# accepted and have a closed circuit.
FULL_CHECK_ROUNDS: Final = 12
MAX_FETCH_S: Final = 3.0  # timeout for the identity of one replica
MAX_RESOLVE_S: Final = 3.0  # timeout for one service name
log = structlog.get_logger(__name__)


class Unreachable(Exception):
    """No server answers at this address."""


class NameNotFound(Unreachable):
    """The name has no address."""


class ResolutionFailed(Exception):
    """The addresses of the name are currently unknown."""


class IdentityProbe(Protocol):
    async def fetch_identity(self, replica: Replica, model: str) -> ReplicaIdentity:
        """Fetch the replica's identity. The caller sets the timeout. Raises Unreachable."""


class Resolver(Protocol):
    async def resolve(self, name: str) -> frozenset[str]:
        """Return IPv4 and IPv6 addresses, at least one. Raises ResolutionFailed."""


class _CandidateReplicas:
    """The possible replicas of one pool, and their identities."""

    def __init__(self, pool: Pool) -> None:
        self.configured_replicas: Final = pool.replicas
        self.discovered_replicas: tuple[Replica, ...] = ()
        # Added by operators, at allowed addresses and at other addresses:
        self.allowed_additions: tuple[Replica, ...] = ()
        self.disallowed_additions: tuple[Replica, ...] = ()
        self.identities: dict[str, ReplicaIdentity] = {}  # by url
        self.failures: dict[str, MismatchReason] = {}  # by url: why the last fetch failed
        self.pool_identity = PoolIdentity()
        self.mismatches: dict[Replica, IdentityMismatch] = {}

    @property
    def configured_or_discovered(self) -> tuple[Replica, ...]:
        """The replicas that the configuration lists or discovers."""
        return tuple(
            {
                replica.url: replica
                for replica in (*self.configured_replicas, *self.discovered_replicas)
            }.values()
        )

    @property
    def all_replicas(self) -> tuple[Replica, ...]:
        """The replicas that become members if their identity does not contradict the pool's."""
        return (*self.configured_or_discovered, *self._exclude_configured(self.allowed_additions))

    @property
    def disallowed_replicas(self) -> tuple[Replica, ...]:
        return self._exclude_configured(self.disallowed_additions)

    def has_joined(self, replica: Replica) -> bool:
        """Return whether the replica gets requests.

        A discovered or added replica must first pass the identity check.
        """
        is_known = replica in self.configured_replicas or replica.url in self.identities
        return is_known and replica not in self.mismatches

    def list_identities(self, replicas: Iterable[Replica]) -> list[ReplicaIdentity]:
        return [
            self.identities[replica.url] for replica in replicas if replica.url in self.identities
        ]

    def _exclude_configured(self, replicas: tuple[Replica, ...]) -> tuple[Replica, ...]:
        """Leave out replicas that the configuration lists or discovers: these take precedence."""
        names = {replica.name for replica in self.configured_or_discovered}
        return tuple(
            {replica.name: replica for replica in replicas if replica.name not in names}.values()
        )


class PoolMembers:
    """The members of all pools. Used on one event loop only."""

    def __init__(
        self,
        pools: PoolConfig,
        replicas: ReplicaStates,
        *,
        identities: IdentityProbe,
        resolvers: Mapping[DiscoverySource, Resolver],
        token_ids: Mapping[str, tuple[int, ...]],
    ) -> None:
        """`token_ids`: the token IDs of PROBE_TEXT, by pool."""
        self.changed: list[Callable[[Pool], None]] = []  # functions, called with a changed pool
        self._pools = pools
        self._replicas = replicas
        self._identities = identities
        self._resolvers = resolvers
        self._has_changed = asyncio.Event()
        self._reconciling = asyncio.Lock()
        self._token_ids = token_ids
        self._candidates = {name: _CandidateReplicas(pool) for name, pool in pools.by_name.items()}

    @property
    def rejected_replicas(self) -> list[tuple[str, str, IdentityMismatch]]:
        """Pool, replica and reason of each rejected replica."""
        return [
            (pool, replica.name, mismatch)
            for pool, candidates in self._candidates.items()
            for replica, mismatch in candidates.mismatches.items()
        ]

    def set_added(self, added: Mapping[str, Sequence[Replica]]) -> None:
        """Set all replicas that operators have added, by pool.

        Replicas that are no longer in `added` leave at once. New ones are checked in a round that
        begins now.
        """
        for name, candidates in self._candidates.items():
            patterns = self._pools.by_name[name].allowed_replica_hosts
            pool_additions = tuple(added.get(name, ()))
            candidates.allowed_additions = tuple(
                addition for addition in pool_additions if _is_allowed(addition, patterns)
            )
            candidates.disallowed_additions = tuple(
                addition
                for addition in pool_additions
                if addition not in candidates.allowed_additions
            )
            self._update_members(name)
        self.request_reconcile()
        if unknown_pools := sorted(added.keys() - self._candidates.keys()):
            log.warning("added_replica.unknown_pool", pools=unknown_pools)

    def request_reconcile(self) -> None:
        """Start the next round now, because something has changed."""
        self._has_changed.set()

    async def run(self) -> None:
        """Run rounds until cancelled."""
        num_rounds = 0  # since the last full check, without the rounds that changes trigger
        while True:
            await asyncio.sleep(MIN_ROUND_S)
            if not await self._wait_for_change():
                num_rounds += 1
            await self.reconcile(checks_all=num_rounds == FULL_CHECK_ROUNDS)
            num_rounds %= FULL_CHECK_ROUNDS

    async def _wait_for_change(self) -> bool:
        """Wait for a change or the end of the round's time. Return whether there was a change."""
        try:
            async with asyncio.timeout(ROUND_S - MIN_ROUND_S):
                await self._has_changed.wait()
        except TimeoutError:
            return False
        self._has_changed.clear()
        return True

    async def reconcile(self, *, checks_all: bool = True) -> None:
        """Run one round.

        `checks_all`: check the identity of every replica, also of accepted ones.
        """
        async with self._reconciling, asyncio.TaskGroup() as group:
            for name in self._candidates:
                group.create_task(self._reconcile_pool(name, checks_all=checks_all))
        self._replicas.retain({replica.url for replica in self._pools.list_replicas()})

    async def _reconcile_pool(self, name: str, *, checks_all: bool) -> None:
        candidates, pool = self._candidates[name], self._pools.by_name[name]
        if pool.discover is not None:
            await self._resolve(candidates, pool.discover, self._resolvers[pool.source])
        async with asyncio.TaskGroup() as group:
            for replica in candidates.all_replicas:
                if checks_all or self._needs_identity(candidates, replica):
                    group.create_task(self._fetch_identity(candidates, replica, pool.model))
        self._update_members(name)

    async def _resolve(
        self, candidates: _CandidateReplicas, discover: Replica, resolver: Resolver
    ) -> None:
        try:
            async with asyncio.timeout(MAX_RESOLVE_S):
                addresses = await resolver.resolve(discover.host)
        except (ResolutionFailed, TimeoutError) as error:
            log.warning("pool.unresolved", name=discover.host, error=str(error))
            return
        candidates.discovered_replicas = tuple(
            discover.with_address(address) for address in sorted(addresses)
        )

    def _needs_identity(self, candidates: _CandidateReplicas, replica: Replica) -> bool:
        return (
            replica.url not in candidates.identities
            or replica.url in candidates.failures
            or replica in candidates.mismatches
            or self._replicas.get_circuit(replica) is not CircuitState.CLOSED
        )

    async def _fetch_identity(
        self, candidates: _CandidateReplicas, replica: Replica, model: str
    ) -> None:
        try:
            async with asyncio.timeout(MAX_FETCH_S):
                candidates.identities[replica.url] = await self._identities.fetch_identity(
                    replica, model
                )
        except NameNotFound:
            candidates.failures[replica.url] = MismatchReason.NAME_NOT_FOUND
        except (Unreachable, TimeoutError, ValueError):  # the last: invalid address or response
            candidates.failures[replica.url] = MismatchReason.UNREACHABLE
        else:
            candidates.failures.pop(replica.url, None)

    def _update_members(self, name: str) -> None:
        """Choose the members of the pool, from the current identities and failures."""
        candidates, pool = self._candidates[name], self._pools.by_name[name]
        urls = {replica.url for replica in candidates.all_replicas}
        for facts_by_url in (candidates.identities, candidates.failures):
            for url in facts_by_url.keys() - urls:
                del facts_by_url[url]
        candidates.pool_identity = derive_pool_identity(
            pool,
            candidates.list_identities(candidates.configured_or_discovered),
            candidates.pool_identity,
            newcomers=candidates.list_identities(candidates.allowed_additions),
        )
        mismatches = {
            replica: mismatch
            for replica in candidates.all_replicas
            if (mismatch := self._find_mismatch(name, replica)) is not None
        }
        allowed_hosts = ", ".join(pool.allowed_replica_hosts)
        mismatches |= {
            replica: IdentityMismatch(MismatchReason.HOST_NOT_ALLOWED, replica.host, allowed_hosts)
            for replica in candidates.disallowed_replicas
        }
        self._log_mismatches(name, candidates, mismatches)
        candidates.mismatches = mismatches
        members = tuple(filter(candidates.has_joined, candidates.all_replicas))
        if members != pool.replicas:
            self._set_replicas(pool, members)

    def _find_mismatch(self, name: str, replica: Replica) -> IdentityMismatch | None:
        candidates, pool = self._candidates[name], self._pools.by_name[name]
        identity = candidates.identities.get(replica.url)
        if identity is not None:  # the last known one counts, even if the last fetch failed
            # An added replica must state its model (rule 5).
            if identity.roots is None and replica not in candidates.configured_or_discovered:
                return IdentityMismatch(MismatchReason.NO_IDENTITY, "", pool.model)
            return check_identity(pool, identity, candidates.pool_identity, self._token_ids[name])
        reason = candidates.failures.get(replica.url)
        if reason is MismatchReason.UNREACHABLE and replica in candidates.configured_replicas:
            return None  # its circuit breaker handles this
        return None if reason is None else IdentityMismatch(reason)

    def _log_mismatches(
        self,
        pool: str,
        candidates: _CandidateReplicas,
        now: Mapping[Replica, IdentityMismatch],
    ) -> None:
        before = candidates.mismatches
        for replica, mismatch in now.items():
            if before.get(replica) != mismatch:
                log.error(
                    "replica.rejected",
                    pool=pool,
                    replica=replica.name,
                    reason=mismatch.reason.value,
                    actual=mismatch.actual,
                    expected=mismatch.expected,
                )
        for replica in candidates.all_replicas:  # without rejected replicas that have left
            if replica in before and replica not in now:
                log.info("replica.accepted", pool=pool, replica=replica.name)

    def _set_replicas(self, pool: Pool, members: Iterable[Replica]) -> None:
        self._pools.set_replicas(pool.name, members)
        current_pool = self._pools.by_name[pool.name]
        before_names = {replica.name for replica in pool.replicas}
        now_names = {replica.name for replica in current_pool.replicas}
        log.info(
            "pool.changed",
            pool=pool.name,
            joined=sorted(now_names - before_names),
            left=sorted(before_names - now_names),
        )
        for call in self.changed:
            call(current_pool)


def _is_allowed(replica: Replica, patterns: Sequence[str]) -> bool:
    """Return whether the patterns allow all addresses of the replica.

    The addresses of KV events are included, because the gateway trusts these events.
    """
    addresses = (replica.url, replica.kv_events, replica.kv_replay)
    hosts = (urlsplit(address).hostname or "" for address in addresses if address is not None)
    return all(matches(host, patterns) for host in hosts)
