"""Reads from Redis the state that operators set for the fleet, and follows its changes.

Examples are drained replicas and running experiments. Pub/sub announces changes at once. A counter
is polled, too, in case a message was missed.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Final, cast

import msgspec
import structlog
from redis.asyncio import Redis
from redis.exceptions import RedisError

from caret.contracts.added_replicas import (
    ADDITIONS,
    ADDITIONS_CHANGED,
    ADDITIONS_VERSION,
    ReplicaChange,
    decode_replica_change,
)
from caret.contracts.drained_replicas import DRAINS, DRAINS_CHANGED, DRAINS_VERSION
from caret.contracts.experiments import (
    EXPERIMENTS,
    EXPERIMENTS_CHANGED,
    EXPERIMENTS_VERSION,
    decode_experiment,
)
from caret.foundation.environment import BadSetting
from inference.completion.variant import Variant
from inference.gateway.experiments import Experiment, ExperimentSet, make_experiment
from inference.pools.cache_isolation import SpeculationMethod
from inference.pools.discovery.pool_members import PoolMembers
from inference.pools.health.replica_states import ReplicaStates
from inference.pools.pool_config import Replica, ReplicaEntry, build_replica
from inference.redis_subscription import RedisSubscription

MAX_ADDITIONS: Final = 1_000  # replicas; further ones are ignored
POLL_S: Final = 0.5
log = structlog.get_logger(__name__)


class FleetStateFeed(ABC):
    """A feed of one kind of state."""

    name: ClassVar[str]  # in logs
    version_key: ClassVar[str]  # Redis key of the counter, which is the state's version
    channel: ClassVar[str]  # Redis channel

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._last_version: bytes | str | None = None  # version of the state that was applied last

    @abstractmethod
    async def apply_state(self) -> None:
        """Read the whole state and apply it. May raise RedisError."""

    async def start(self) -> None:
        """Read the state once before any replica is used.

        If Redis is unreachable there are no snapshots and thus no requests; `run` reads the state
        later.
        """
        try:
            await self.sync()
        except (RedisError, OSError, TimeoutError) as error:
            self._log_unreachable(error)

    async def run(self) -> None:
        """Follow the state until cancelled. Survives outages of Redis."""
        subscription = RedisSubscription(self._redis, self.channel, poll_s=POLL_S, retry_s=POLL_S)
        await subscription.follow(
            lambda _message: self.sync(), on_unreachable=self._log_unreachable
        )

    async def sync(self) -> None:
        """Read and apply the state once, if its version has changed. Raises RedisError."""
        version = await self._redis.get(self.version_key)
        # None: nothing was ever set, or Redis has lost its data. The state stays as it is. The
        # counter starts again at 0 and may reach the last version with another state, so the last
        # version must be forgotten.
        if version is None:
            self._last_version = None
            return
        if version == self._last_version:
            return
        # The state is read after the version. A state that changes in between is read again next
        # time.
        await self.apply_state()
        self._last_version = version

    def _log_unreachable(self, error: Exception) -> None:
        log.warning("fleet_state.redis_unreachable", by=self.name, error=type(error).__name__)


class DrainFeed(FleetStateFeed):
    """Drains the replicas that operators have drained."""

    name = "drains"
    version_key = DRAINS_VERSION
    channel = DRAINS_CHANGED

    def __init__(self, redis: Redis, replicas: ReplicaStates) -> None:
        super().__init__(redis)
        self._replicas = replicas

    async def apply_state(self) -> None:
        names = cast("list[bytes]", await cast(Any, self._redis.hkeys(DRAINS)))
        self._replicas.set_drained(name.decode("utf-8", "replace") for name in names)


class AddedReplicaFeed(FleetStateFeed):
    """Adds the replicas that operators have added to their pools."""

    name = "additions"
    version_key = ADDITIONS_VERSION
    channel = ADDITIONS_CHANGED

    def __init__(self, redis: Redis, pool_members: PoolMembers) -> None:
        super().__init__(redis)
        self._pool_members = pool_members

    async def apply_state(self) -> None:
        entries = cast("dict[bytes, bytes]", await cast(Any, self._redis.hgetall(ADDITIONS)))
        replicas_by_pool: defaultdict[str, list[Replica]] = defaultdict(list)
        for data in list(entries.values())[:MAX_ADDITIONS]:
            try:
                addition = decode_replica_change(data)
                replicas_by_pool[addition.pool].append(_to_replica(addition))
            # The entry has a newer format, or was not written by Caret. Other entries are applied.
            except (msgspec.DecodeError, BadSetting, ValueError) as error:
                log.warning("added_replica.invalid", error=str(error))
        self._pool_members.set_added(replicas_by_pool)


class ExperimentFeed(FleetStateFeed):
    """Runs the experiments that operators have started."""

    name = "experiments"
    version_key = EXPERIMENTS_VERSION
    channel = EXPERIMENTS_CHANGED

    def __init__(
        self,
        redis: Redis,
        experiments: ExperimentSet,
        check_variants: Callable[[Iterable[Variant]], None],
    ) -> None:
        """`check_variants` raises BadSetting for a variant that this gateway does not know."""
        super().__init__(redis)
        self._experiments = experiments
        self._check_variants = check_variants

    async def apply_state(self) -> None:
        entries = cast("dict[bytes, bytes]", await cast(Any, self._redis.hgetall(EXPERIMENTS)))
        running: list[Experiment] = []
        for _, data in sorted(entries.items()):
            try:
                change = decode_experiment(data)
                if not change.is_running:
                    continue
                experiment = make_experiment(
                    change.name, tenants=change.tenants, variants=change.variants
                )
                self._check_variants(experiment.variants)
            # The entry has a newer format, or was not written by Caret. Other entries are applied.
            except (msgspec.DecodeError, BadSetting, ValueError) as error:
                log.warning("experiment.invalid", error=str(error))
                continue
            running.append(experiment)
        self._experiments.set_running(running)


def _to_replica(addition: ReplicaChange) -> Replica:
    """Convert an entry to a replica.

    Raises BadSetting; ValueError for an unknown speculation method.
    """
    entry = ReplicaEntry(
        url=addition.url,
        kv_events=addition.kv_events,
        speculation=None
        if addition.speculation is None
        else SpeculationMethod(addition.speculation),
    )
    return build_replica(entry, pool=addition.pool)
