"""The catalogue of pools, as the operator wrote it (a TOML file).

    [[pools]]
    name = "fast"                  # in the numbers of every completion
    tier = "fast"                  # fast | quality
    model = "qwen"                 # the name under which the replicas serve it
    tokenizer = "/models/qwen"     # a folder with tokenizer.json, or a name on the hub
    max_context_tokens = 8192      # of the replicas: prompt and completion together
    replicas = ["http://10.0.0.1:8000"]
    # of prompts: see inference/context/prompt/layout.py; left out: stable
    layout = "stable"
    family = "mellum"              # of models: left out: as the tokenizer's markers tell
    heals_words = false            # the model goes on in mid-word; left out: true (fim.py says why)

    block_size = 32                # of the replicas' prefix caches; left out: as most have it
    tenants = ["acme"]             # slugs: a pool of theirs alone; left out: for all others

One shared pool for each tier; the same replicas may stand in two pools. A replica of which more is
to be said is a table:

    replicas = [
        "http://10.0.0.1:8000",
        { url = "http://10.0.0.2:8000", kv_events = "tcp://10.0.0.2:5557", speculation = "ngram" },
    ]

Instead of `replicas`, or beside it, the name of a headless service: each of its addresses is a
replica, looked up every few seconds. It takes what a replica takes; its name stands for each
address in `kv_events` and `kv_replay`, too.

    discover = "http://engines.caret.svc.cluster.local:8000"

    source = "kubernetes"          # dns | kubernetes; left out: dns

By `kubernetes` the name's beginning, SERVICE or SERVICE.NAMESPACE, is a service whose ready
endpoints the Kubernetes API tells, as soon as they change.

Where operators may add replicas while gateways run; left out: nowhere. Prompts are sent there.

    additions_from = ["10.12.0.0/16", "*.engines.example.com"]

What a replica says of itself that contradicts its pool keeps it out (membership.py).

kv_events        where it publishes its KV events (vLLM's --kv-events-config): of two replicas or
                 more the gateway then asks the one that holds more of a prompt. They hold prompts
                 in clear and anybody may subscribe: on a private network only. Of no use in a pool
                 of one.
kv_replay        its `replay_endpoint`, without which a gateway knows only what was stored since it
                 was started.
speculation      ngram | draft | suffix, as --speculative-config has it. Requests of languages in
                 which too little of it is accepted go to the pool's replicas without. `suffix` also
                 needs suffix_decoding_max_cached_requests = 0, as its --speculative-config must
                 have it: otherwise completions of one tenant are drafts for another.
kv_connector     of its --kv-transfer-config: OffloadingConnector or LMCacheMPConnector, whose keys
                 hold the tenant's salt. Any other is refused.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from caret.contracts.policy import Tier
from caret.contracts.snapshot import TenantSnapshot
from caret.foundation.egress.host_patterns import require_pattern
from caret.foundation.environment import BadSetting
from caret.foundation.toml_file import read_toml
from inference.context.prompt.prompt_options import DEFAULT_PROMPT_OPTIONS, PromptOptions
from inference.pools.cache_isolation import SpeculationMethod, require_isolated_cache

MIN_CONTEXT_TOKENS: Final = 1024  # the longest completion has 512; the prompt needs its room, too


class DiscoverySource(StrEnum):
    """Who tells a name's addresses."""

    DNS = "dns"
    KUBERNETES = "kubernetes"


class ReplicaEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    url: str
    kv_events: str | None = None
    kv_replay: str | None = None
    speculation: SpeculationMethod | None = None
    suffix_decoding_max_cached_requests: int | None = None
    kv_connector: str | None = None


class PoolEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    tier: Tier
    model: str
    tokenizer: str
    max_context_tokens: int
    replicas: tuple[str | ReplicaEntry, ...] = ()
    discover: str | ReplicaEntry | None = None
    source: DiscoverySource = DiscoverySource.DNS
    block_size: int | None = None
    layout: str | None = None
    family: str | None = None
    heals_words: bool = True
    tenants: tuple[str, ...] = ()
    additions_from: tuple[str, ...] = ()


class _PoolsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pools: tuple[PoolEntry, ...]


@dataclass(frozen=True, slots=True)
class Replica:
    """One engine server."""

    name: str  # host:port, in the numbers of a completion
    url: str  # without a trailing slash
    kv_events: str | None = None  # tcp://host:port; None: it does not publish them
    kv_replay: str | None = None
    speculation: SpeculationMethod | None = None  # None: it does not speculate

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    def with_address(self, address: str) -> "Replica":
        """The same at an IP address in the place of its name."""
        return replace(
            self,
            name=_placed(f"//{self.name}", address).removeprefix("//"),
            url=_placed(self.url, address),
            kv_events=self.kv_events and _placed(self.kv_events, address),
            kv_replay=self.kv_replay and _placed(self.kv_replay, address),
        )


@dataclass(frozen=True, slots=True)
class Pool:
    name: str
    tier: Tier
    model: str
    tokenizer: str
    max_context_tokens: int
    replicas: tuple[Replica, ...]  # none: not one was found, or all were refused
    discover: Replica | None = None  # a name whose addresses are replicas; None: nothing to find
    source: DiscoverySource = DiscoverySource.DNS  # of these addresses
    block_tokens: int | None = None  # None: what most of its replicas have
    prompt_options: PromptOptions = DEFAULT_PROMPT_OPTIONS  # of its prompts
    tenants: frozenset[str] = frozenset()  # slugs; empty: shared by all that have no own
    allowed_replica_hosts: tuple[str, ...] = ()  # networks and names (host_patterns.py)


class PoolConfig:
    """All pools, by name and by whom they serve. Which replicas they have may change; which pools
    there are does not."""

    def __init__(self, pools: Iterable[Pool]) -> None:
        """There is a shared pool for each tier."""
        self._by_name: Final = {pool.name: pool for pool in pools}
        every = self._by_name.values()
        self._shared = {pool.tier: pool.name for pool in every if not pool.tenants}
        self._dedicated = {(slug, pool.tier): pool.name for pool in every for slug in pool.tenants}

    @property
    def by_name(self) -> Mapping[str, Pool]:
        return self._by_name

    def find(self, snapshot: TenantSnapshot, tier: Tier) -> Pool:
        return self._by_name[self._dedicated.get((snapshot.slug, tier)) or self._shared[tier]]

    def find_shared(self, tier: Tier) -> Pool:
        return self._by_name[self._shared[tier]]

    def set_replicas(self, pool: str, replicas: Iterable[Replica]) -> None:
        """From now on it has these; what is under way at others ends as it would."""
        self._by_name[pool] = replace(self._by_name[pool], replicas=tuple(replicas))

    def list_replicas(self, *, min_of_pool: int = 1) -> tuple[Replica, ...]:
        """Of all pools with so many; one that stands in two of them is there once."""
        pools = (pool for pool in self.by_name.values() if len(pool.replicas) >= min_of_pool)
        every = (replica for pool in pools for replica in pool.replicas)
        return tuple({replica.url: replica for replica in every}.values())


def read_catalog(path: Path) -> PoolConfig:
    """Raises BadSetting, by the file's name and the entry's place."""
    parsed = read_toml(path, _PoolsFile, setting="CARET_POOLS_FILE")
    _check_shares(parsed.pools, path)
    pools = [_pool(entry, path) for entry in parsed.pools]
    _check_replicas(pools, path)
    return PoolConfig(pools)


def _check_shares(entries: tuple[PoolEntry, ...], path: Path) -> None:
    """Each name once, each tier one shared pool, each tenant one of its own for a tier at most."""
    if twice := _twice(entry.name for entry in entries):
        raise BadSetting(f"CARET_POOLS_FILE: {path}: two pools of the name {twice}.")
    shared = [entry.tier for entry in entries if not entry.tenants]
    if twice := _twice(shared):
        raise BadSetting(f"CARET_POOLS_FILE: {path}: two pools for the tier {twice}.")
    if missing := set(Tier) - set(shared):
        raise BadSetting(f"CARET_POOLS_FILE: {path}: no pool for the tier {min(missing)}.")
    if twice := _twice(f"{slug} ({entry.tier})" for entry in entries for slug in entry.tenants):
        raise BadSetting(f"CARET_POOLS_FILE: {path}: two pools of the tenant {twice}.")


def _check_replicas(pools: list[Pool], path: Path) -> None:
    """What is said of a replica that stands in two pools is the same in both."""
    said: dict[str, Replica] = {}
    for replica in (replica for pool in pools for replica in pool.replicas):
        if said.setdefault(replica.url, replica) != replica:
            raise BadSetting(
                f"CARET_POOLS_FILE: {path}: two entries of {replica.name} that differ."
            )


def _twice(names: Iterable[str]) -> str | None:
    """The first name that comes a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _pool(entry: PoolEntry, path: Path) -> Pool:
    if not entry.replicas and entry.discover is None:
        raise BadSetting(f"CARET_POOLS_FILE: {path}: the pool {entry.name} has no replicas.")
    if entry.source is DiscoverySource.KUBERNETES and entry.discover is None:
        raise BadSetting(
            f"CARET_POOLS_FILE: {path}: the pool {entry.name} has a source and no discover."
        )
    if entry.block_size is not None and entry.block_size < 1:
        raise BadSetting(
            f"CARET_POOLS_FILE: {path}: the pool {entry.name} has a block_size below 1."
        )
    if entry.max_context_tokens < MIN_CONTEXT_TOKENS:
        raise BadSetting(
            f"CARET_POOLS_FILE: {path}: the pool {entry.name} needs max_context_tokens of at least "
            f"{MIN_CONTEXT_TOKENS}."
        )
    _check_patterns(entry, path)
    return Pool(
        name=entry.name,
        tier=entry.tier,
        model=entry.model,
        tokenizer=entry.tokenizer,
        max_context_tokens=entry.max_context_tokens,
        replicas=tuple(replica_of(each, pool=entry.name) for each in entry.replicas),
        discover=None if entry.discover is None else replica_of(entry.discover, pool=entry.name),
        source=entry.source,
        block_tokens=entry.block_size,
        prompt_options=PromptOptions(
            layout=entry.layout, family=entry.family, has_token_healing=entry.heals_words
        ),
        tenants=frozenset(entry.tenants),
        allowed_replica_hosts=entry.additions_from,
    )


def _check_patterns(entry: PoolEntry, path: Path) -> None:
    for pattern in entry.additions_from:
        try:
            require_pattern(pattern)
        except ValueError as error:
            raise BadSetting(
                f"CARET_POOLS_FILE: {path}: the pool {entry.name} has additions_from {pattern!r}: "
                f'write a network ("10.12.0.0/16"), a name, or "*." and a name ({error}).'
            ) from error


def replica_of(entry: str | ReplicaEntry, *, pool: str) -> Replica:
    """Raises BadSetting, by the pool's name."""
    if isinstance(entry, str):
        entry = ReplicaEntry(url=entry)
    parts = urlsplit(entry.url)
    if parts.scheme not in ("http", "https") or not _has_host(parts):
        raise BadSetting(
            f"CARET_POOLS_FILE: the pool {pool} has a replica that is no http address."
        )
    for address in (entry.kv_events, entry.kv_replay):
        if address is not None and not _is_socket(address):
            raise BadSetting(f"CARET_POOLS_FILE: the pool {pool} has KV events at no tcp address.")
    try:
        require_isolated_cache(
            speculation=entry.speculation,
            max_cached_requests=entry.suffix_decoding_max_cached_requests,
            kv_connector=entry.kv_connector,
        )
    except BadSetting as error:
        raise BadSetting(f"CARET_POOLS_FILE: the pool {pool}: {error}") from error
    return Replica(
        name=parts.netloc,
        url=entry.url.rstrip("/"),
        kv_events=entry.kv_events,
        kv_replay=entry.kv_replay,
        speculation=entry.speculation,
    )


def _is_socket(address: str) -> bool:
    parts = urlsplit(address)
    return parts.scheme == "tcp" and _has_host(parts) and parts.port is not None


def _has_host(parts: SplitResult) -> bool:
    try:
        _ = parts.port
    except ValueError:  # a port that is no number
        return False
    return bool(parts.hostname)


def _placed(url: str, address: str) -> str:
    """The address in the place of the host's name."""
    parts = urlsplit(url)
    host = f"[{address}]" if ":" in address else address
    return parts._replace(netloc=host if parts.port is None else f"{host}:{parts.port}").geturl()
