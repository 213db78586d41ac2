"""The catalogue of pools, as the operator wrote it (a TOML file).

    [[pools]]
    name = "fast"                  # in the numbers of every completion
    tier = "fast"                  # fast | quality
    model = "qwen"                 # the name under which the replicas serve it
    tokenizer = "/models/qwen"     # a folder with tokenizer.json, or a name on the hub
    max_context_tokens = 8192      # of the replicas: prompt and completion together
    replicas = ["http://10.0.0.1:8000"]
    order = "spm2"                 # psm | spm | spm2; left out: as the model's family has it

    tenants = ["acme"]             # slugs: a pool of theirs alone; left out: for all others

One shared pool for each tier; the same replicas may stand in two pools.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from caret.contracts.policy import Tier
from caret.contracts.snapshot import TenantSnapshot
from caret.foundation.environment import BadSetting
from inference.context.fim import Order

MIN_CONTEXT_TOKENS: Final = 1024  # the longest completion has 512; the prompt needs its room, too


class PoolEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    tier: Tier
    model: str
    tokenizer: str
    max_context_tokens: int
    replicas: tuple[str, ...]
    order: Order | None = None
    tenants: tuple[str, ...] = ()


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pools: tuple[PoolEntry, ...]


@dataclass(frozen=True, slots=True)
class Replica:
    """One engine server."""

    name: str  # host:port, in the numbers of a completion
    url: str  # without a trailing slash


@dataclass(frozen=True, slots=True)
class Pool:
    name: str
    tier: Tier
    model: str
    tokenizer: str
    max_context_tokens: int
    replicas: tuple[Replica, ...]  # at least one
    order: Order | None = None  # of the prompt's parts; None: as the model's family has it
    tenants: frozenset[str] = frozenset()  # slugs; empty: shared by all that have no own


class Pools:
    """All pools, by name and by whom they serve."""

    def __init__(self, pools: Iterable[Pool]) -> None:
        """There is a shared pool for each tier."""
        self.by_name: Final[Mapping[str, Pool]] = {pool.name: pool for pool in pools}
        every = self.by_name.values()
        self._shared = {pool.tier: pool for pool in every if not pool.tenants}
        self._dedicated = {(slug, pool.tier): pool for pool in every for slug in pool.tenants}

    def of(self, snapshot: TenantSnapshot, tier: Tier) -> Pool:
        return self._dedicated.get((snapshot.slug, tier)) or self._shared[tier]

    def shared(self, tier: Tier) -> Pool:
        return self._shared[tier]


def read_catalog(path: Path) -> Pools:
    """Raises BadSetting, by the file's name and the entry's place."""
    try:
        parsed = msgspec.convert(tomllib.loads(path.read_text()), _File)
    except OSError as error:
        raise BadSetting(f"CARET_POOLS: {path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeError, msgspec.ValidationError) as error:
        raise BadSetting(f"CARET_POOLS: {path}: {error}.") from error
    _check_shares(parsed.pools, path)
    return Pools(_pool(entry, path) for entry in parsed.pools)


def _check_shares(entries: tuple[PoolEntry, ...], path: Path) -> None:
    """Each name once, each tier one shared pool, each tenant one of its own for a tier at most."""
    if twice := _twice(entry.name for entry in entries):
        raise BadSetting(f"CARET_POOLS: {path}: two pools of the name {twice}.")
    shared = [entry.tier for entry in entries if not entry.tenants]
    if twice := _twice(shared):
        raise BadSetting(f"CARET_POOLS: {path}: two pools for the tier {twice}.")
    if missing := set(Tier) - set(shared):
        raise BadSetting(f"CARET_POOLS: {path}: no pool for the tier {min(missing)}.")
    if twice := _twice(f"{slug} ({entry.tier})" for entry in entries for slug in entry.tenants):
        raise BadSetting(f"CARET_POOLS: {path}: two pools of the tenant {twice}.")


def _twice(names: Iterable[str]) -> str | None:
    """The first name that comes a second time."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _pool(entry: PoolEntry, path: Path) -> Pool:
    if not entry.replicas:
        raise BadSetting(f"CARET_POOLS: {path}: the pool {entry.name} has no replicas.")
    if entry.max_context_tokens < MIN_CONTEXT_TOKENS:
        raise BadSetting(
            f"CARET_POOLS: {path}: the pool {entry.name} needs max_context_tokens of at least "
            f"{MIN_CONTEXT_TOKENS}."
        )
    return Pool(
        name=entry.name,
        tier=entry.tier,
        model=entry.model,
        tokenizer=entry.tokenizer,
        max_context_tokens=entry.max_context_tokens,
        replicas=tuple(_replica(url, entry.name) for url in entry.replicas),
        order=entry.order,
        tenants=frozenset(entry.tenants),
    )


def _replica(url: str, pool: str) -> Replica:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise BadSetting(f"CARET_POOLS: the pool {pool} has a replica that is no http address.")
    return Replica(name=parts.netloc, url=url.rstrip("/"))
