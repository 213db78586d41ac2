"""The pool configuration, from the operator's TOML file.

    [[pools]]
    name = "fast"                  # in each usage record
    tier = "fast"                  # fast | quality
    model = "qwen"                 # the name under which the replicas serve the model
    tokenizer = "/models/qwen"     # a folder with tokenizer.json, or a name on Hugging Face
    max_context_tokens = 8192      # of the replicas: prompt and completion together
    replicas = ["http://10.0.0.1:8000"]
    layout = "stable"              # order of a prompt's segments (layout.py); default: stable
    family = "mellum"              # model family (model_families.py); default: detected by the
                                   # tokenizer's markers
    edit_format = "zeta"           # prompt format of the mode `edit` (edit_formats.py); default:
                                   # that of `family`, if it is set; most families have none
    has_token_healing = false      # true (default): a prompt ends before the partial word at the
                                   # cursor, and the completion must begin with that word. false:
                                   # the model continues the partial word
    prompt_tokens = 6000           # budget of a prompt; default: 2000 (fast) or 4000 (quality)
    block_size = 32                # tokens in a block of the prefix caches; default: the size that
                                   # most replicas report
    tenants = ["acme"]             # slugs of a dedicated pool's tenants; default: shared

The first shared pool of each tier serves all tenants to which operators have assigned no other pool
(pool_selection.py). A replica may be in two pools. A table gives more options of a replica:

    replicas = [
        "http://10.0.0.1:8000",
        { url = "http://10.0.0.2:8000", kv_events = "tcp://10.0.0.2:5557", speculation = "ngram" },
    ]

Instead of `replicas`, or in addition, `discover` names a headless service. Each address of the
service is a replica. The name is resolved every few seconds. A table can give options of these
replicas, too. In `kv_events` and `kv_replay`, each replica's address replaces the name.

    discover = "http://engines.caret.svc.cluster.local:8000"

    source = "kubernetes"          # dns | kubernetes; default: dns

With `kubernetes`, the name begins with SERVICE or SERVICE.NAMESPACE. The Kubernetes API reports the
service's ready endpoints as soon as they change.

`additions_from` lists the networks and host names at which operators may add replicas at runtime.
Prompts are sent to these replicas. Default: none.

    additions_from = ["10.12.0.0/16", "*.engines.example.com"]

A replica whose identity contradicts its pool is rejected (pool_members.py).

kv_events        the endpoint at which the replica publishes KV events (vLLM's --kv-events-config).
                 The gateway then prefers the replica that has more of a prompt in its cache. The
                 events contain prompts in clear text, and anybody may subscribe: use a private
                 network. Not used if the replica's pool has no other replica.
kv_replay        the `replay_endpoint` of the same option. Without it, a gateway only knows blocks
                 that were stored after the gateway started.
speculation      the method in --speculative-config: ngram, suffix, or draft for any other method.
                 Requests in languages with a low acceptance rate go to the pool's replicas without
                 speculation. `suffix` also needs suffix_decoding_max_cached_requests = 0, here and
                 in --speculative-config: otherwise completions of one tenant become drafts for
                 another.
kv_connector     from --kv-transfer-config: OffloadingConnector or LMCacheMPConnector, which have
                 the tenant's salt in their cache keys. Any other is rejected.
max_num_seqs     as in --max-num-seqs: the requests that the replica runs at once. Further requests
                 wait in its queue, and the gateway sheds prefetches. Default: unknown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

import msgspec

from caret.contracts.policy import Tier
from caret.contracts.pricing import MAX_GENERATED_TOKENS
from caret.foundation.egress.host_patterns import require_pattern
from caret.foundation.environment import BadSetting
from caret.foundation.toml_file import read_toml
from inference.context.prompt.model_formats.edit_formats import get_edit_format
from inference.context.prompt.model_formats.model_families import get_family
from inference.context.prompt.prompt_options import DEFAULT_PROMPT_OPTIONS, PromptOptions
from inference.context.prompt.token_budget import MAX_BUDGET_TOKENS, MIN_BUDGET_TOKENS
from inference.pools.cache_isolation import SpeculationMethod, require_isolated_cache

MIN_CONTEXT_TOKENS: Final = 1024  # fits a prompt and MAX_GENERATED_TOKENS; a chat may need more


class DiscoverySource(StrEnum):
    """The service that resolves the name in `discover`."""

    DNS = "dns"
    KUBERNETES = "kubernetes"


class ReplicaEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A replica's table in the file, described above. PoolEntry is a pool's table."""

    url: str
    kv_events: str | None = None
    kv_replay: str | None = None
    speculation: SpeculationMethod | None = None
    suffix_decoding_max_cached_requests: int | None = None
    kv_connector: str | None = None
    max_num_seqs: int | None = None


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
    edit_format: str | None = None
    has_token_healing: bool = True
    prompt_tokens: int | None = None
    tenants: tuple[str, ...] = ()
    additions_from: tuple[str, ...] = ()


class _PoolsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pools: tuple[PoolEntry, ...]


@dataclass(frozen=True, slots=True)
class Replica:
    """One engine server."""

    name: str  # host:port, in usage records; without the port if the URL has none
    url: str  # without a trailing slash
    kv_events: str | None = None  # tcp://host:port; None: not published
    kv_replay: str | None = None  # tcp://host:port; None: events are not replayed
    speculation: SpeculationMethod | None = None  # None: no speculation
    max_num_seqs: int | None = None  # requests that the replica runs at once; None: unknown

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    def with_address(self, address: str) -> "Replica":
        """Return the replica with an IP address instead of its host name."""
        return replace(
            self,
            name=_replace_host(f"//{self.name}", address).removeprefix("//"),
            url=_replace_host(self.url, address),
            kv_events=self.kv_events and _replace_host(self.kv_events, address),
            kv_replay=self.kv_replay and _replace_host(self.kv_replay, address),
        )


@dataclass(frozen=True, slots=True)
class Pool:
    name: str
    tier: Tier
    model: str
    tokenizer: str
    max_context_tokens: int
    replicas: tuple[Replica, ...]  # empty: none was found, or all were rejected
    discover: Replica | None = None  # its addresses are replicas; None: no discovery
    source: DiscoverySource = DiscoverySource.DNS  # of these addresses
    block_tokens: int | None = None  # `block_size`; None: the size that most replicas report
    prompt_options: PromptOptions = DEFAULT_PROMPT_OPTIONS
    tenants: frozenset[str] = frozenset()  # slugs of a dedicated pool; empty: shared
    allowed_replica_hosts: tuple[str, ...] = ()  # `additions_from`

    @property
    def edit_format(self) -> str | None:
        """The prompt format of edits; None: the model proposes no edits."""
        return self.prompt_options.edit_format

    @property
    def max_num_seqs(self) -> int | None:
        """The number of requests that all replicas together run at once; None: unknown.

        A replica without a known limit counts like the replica with the lowest limit.
        """
        known_limits = [
            replica.max_num_seqs for replica in self.replicas if replica.max_num_seqs is not None
        ]
        if not known_limits:
            return None
        return sum(known_limits) + min(known_limits) * (len(self.replicas) - len(known_limits))


class PoolConfig:
    """All pools. Their replicas may change; all other properties stay the same."""

    def __init__(self, pools: Iterable[Pool]) -> None:
        """The pools must include a shared pool for each tier."""
        self._by_name: Final = {pool.name: pool for pool in pools}
        all_pools = self._by_name.values()
        self._shared_pools: dict[Tier, str] = {}
        for pool in all_pools:
            if not pool.tenants:
                self._shared_pools.setdefault(pool.tier, pool.name)
        self._dedicated_pools = {
            (slug, pool.tier): pool.name for pool in all_pools for slug in pool.tenants
        }

    @property
    def by_name(self) -> Mapping[str, Pool]:
        return self._by_name

    def find_dedicated(self, slug: str, tier: Tier) -> str | None:
        """Return the name of the tenant's dedicated pool; None if there is none."""
        return self._dedicated_pools.get((slug, tier))

    def find_shared(self, tier: Tier) -> Pool:
        return self._by_name[self._shared_pools[tier]]

    def set_replicas(self, pool: str, replicas: Iterable[Replica]) -> None:
        """Set the replicas of a pool. Requests in flight at removed replicas continue."""
        self._by_name[pool] = replace(self._by_name[pool], replicas=tuple(replicas))

    def list_replicas(self, *, min_replicas: int = 1) -> tuple[Replica, ...]:
        """Return the distinct replicas of all pools with at least `min_replicas` replicas."""
        pools = (pool for pool in self.by_name.values() if len(pool.replicas) >= min_replicas)
        replicas = (replica for pool in pools for replica in pool.replicas)
        return tuple({replica.url: replica for replica in replicas}.values())


def read_pool_config(path: Path) -> PoolConfig:
    """Read the operator's file. Raises BadSetting."""
    file = read_toml(path, _PoolsFile, setting="CARET_POOLS_FILE")
    _check_pools(file.pools, path)
    pools = [_build_pool(entry, path) for entry in file.pools]
    _check_replicas(pools, path)
    return PoolConfig(pools)


def _check_pools(entries: tuple[PoolEntry, ...], path: Path) -> None:
    """Check that names are unique, and that each tier has a shared pool.

    A tenant may have only one dedicated pool in each tier. Raises BadSetting.
    """
    if duplicate := _find_duplicate(entry.name for entry in entries):
        raise BadSetting(f"CARET_POOLS_FILE: {path}: two pools have the name {duplicate}.")
    if missing := set(Tier) - {entry.tier for entry in entries if not entry.tenants}:
        raise BadSetting(f"CARET_POOLS_FILE: {path}: no shared pool has the tier {min(missing)}.")
    if duplicate := _find_duplicate(
        f"{slug} ({entry.tier})" for entry in entries for slug in entry.tenants
    ):
        raise BadSetting(f"CARET_POOLS_FILE: {path}: two pools name the tenant {duplicate}.")


def _check_replicas(pools: list[Pool], path: Path) -> None:
    """Check that a replica in two pools has the same options in both. Raises BadSetting."""
    replicas_by_url: dict[str, Replica] = {}
    for replica in (replica for pool in pools for replica in pool.replicas):
        if replicas_by_url.setdefault(replica.url, replica) != replica:
            raise BadSetting(
                f"CARET_POOLS_FILE: {path}: two entries of the replica {replica.name} differ."
            )


def _find_duplicate(names: Iterable[str]) -> str | None:
    """Return the first name that occurs twice."""
    earlier_names: set[str] = set()
    for name in names:
        if name in earlier_names:
            return name
        earlier_names.add(name)
    return None


def _build_pool(entry: PoolEntry, path: Path) -> Pool:
    if not entry.replicas and entry.discover is None:
        raise BadSetting(f"CARET_POOLS_FILE: {path}: the pool {entry.name} has no replicas.")
    if entry.source is DiscoverySource.KUBERNETES and entry.discover is None:
        raise BadSetting(
            f"CARET_POOLS_FILE: {path}: the pool {entry.name} has source, which needs discover."
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
    _check_prompt_tokens(entry, path)
    _check_patterns(entry, path)
    return Pool(
        name=entry.name,
        tier=entry.tier,
        model=entry.model,
        tokenizer=entry.tokenizer,
        max_context_tokens=entry.max_context_tokens,
        replicas=tuple(build_replica(replica, pool=entry.name) for replica in entry.replicas),
        discover=None if entry.discover is None else build_replica(entry.discover, pool=entry.name),
        source=entry.source,
        block_tokens=entry.block_size,
        prompt_options=PromptOptions(
            layout=entry.layout,
            family=entry.family,
            has_token_healing=entry.has_token_healing,
            budget_tokens=entry.prompt_tokens,
            edit_format=_find_edit_format(entry, path),
        ),
        tenants=frozenset(entry.tenants),
        allowed_replica_hosts=entry.additions_from,
    )


def _check_prompt_tokens(entry: PoolEntry, path: Path) -> None:
    if entry.prompt_tokens is None:
        return
    highest = min(MAX_BUDGET_TOKENS[entry.tier], entry.max_context_tokens - MAX_GENERATED_TOKENS)
    if not MIN_BUDGET_TOKENS <= entry.prompt_tokens <= highest:
        raise BadSetting(
            f"CARET_POOLS_FILE: {path}: the pool {entry.name} has prompt_tokens "
            f"{entry.prompt_tokens}; write {MIN_BUDGET_TOKENS} to {highest} (a prompt and a "
            f"completion of {MAX_GENERATED_TOKENS} tokens must fit in max_context_tokens)."
        )


def _find_edit_format(entry: PoolEntry, path: Path) -> str | None:
    """Return the edit format of the pool, or else that of `family` if it is set; None: no edits."""
    try:
        if entry.edit_format is not None:
            return get_edit_format(entry.edit_format).name
        return None if entry.family is None else get_family(entry.family).edit_format
    except BadSetting as error:
        raise BadSetting(f"CARET_POOLS_FILE: {path}: the pool {entry.name}: {error}") from error


def _check_patterns(entry: PoolEntry, path: Path) -> None:
    for pattern in entry.additions_from:
        try:
            require_pattern(pattern)
        except ValueError as error:
            raise BadSetting(
                f"CARET_POOLS_FILE: {path}: the pool {entry.name} has additions_from {pattern!r}: "
                f'write a network ("10.12.0.0/16"), a name, or "*." and a name ({error}).'
            ) from error


def build_replica(entry: str | ReplicaEntry, *, pool: str) -> Replica:
    """Check an entry, and return its replica. `pool`: name, for messages. Raises BadSetting."""
    if isinstance(entry, str):
        entry = ReplicaEntry(url=entry)
    parts = _split_url(entry.url)
    if parts is None or parts.scheme not in ("http", "https"):
        raise BadSetting(
            f"CARET_POOLS_FILE: the pool {pool} has a replica whose url is not an HTTP URL, or has "
            "a user name."
        )
    if entry.max_num_seqs is not None and entry.max_num_seqs < 1:
        raise BadSetting(f"CARET_POOLS_FILE: the pool {pool} has a max_num_seqs below 1.")
    for url in (entry.kv_events, entry.kv_replay):
        if url is not None and not _is_tcp_url(url):
            raise BadSetting(
                f"CARET_POOLS_FILE: the pool {pool}: kv_events and kv_replay must be tcp:// "
                "addresses."
            )
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
        max_num_seqs=entry.max_num_seqs,
    )


def _is_tcp_url(url: str) -> bool:
    parts = _split_url(url)
    return parts is not None and parts.scheme == "tcp" and parts.port is not None


def _split_url(url: str) -> SplitResult | None:
    """Return the URL's parts; None if its host or port is not valid, or if it has a user name."""
    try:
        parts = urlsplit(url)
        is_valid = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        return None
    return parts if is_valid else None


def _replace_host(url: str, address: str) -> str:
    parts = urlsplit(url)
    host = f"[{address}]" if ":" in address else address
    return parts._replace(netloc=host if parts.port is None else f"{host}:{parts.port}").geturl()
