"""The installation that a benchmark measures: a running one, or services that the benchmark starts
in a temporary home and on free ports."""

import json
import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import redis

from caret.contracts.api_key import Credential, KeyKind, digest_key, generate_key
from caret.contracts.policy import Isolation, Mode, TenantPolicy, Tier
from caret.contracts.snapshot import (
    CHANGE_CHANNEL,
    CHANGE_COUNTER,
    PUBLISH_SCRIPT,
    SCHEMA,
    SNAPSHOTS,
    VERSIONS,
    TenantSnapshot,
    TenantStatus,
    encode_snapshot,
)
from caret.foundation.crypto.key_derivation import derive_key, parse_root_secret
from caret.foundation.ids import KeyId, TenantId, UserId
from caret.local.caret_services import build_web_service
from caret.local.databases.credentials import write_credentials
from caret.local.databases.valkey import EmbeddedValkey
from caret.local.engines.engine import (
    MAX_CONTEXT_TOKENS,
    build_engine_service,
    engine_from_environment,
)
from caret.local.engines.pools_file import ReplicaEntry, render_pools, write_pools
from caret.local.paths import EmbeddedPaths
from caret.local.processes.process_tag import new_tag, tag_environment
from caret.local.processes.service import CommandService, Service, await_ready
from caret.local.processes.watchdog import Watchdog
from inference.pools.pool_config import read_pool_config
from tests.benchmarks.results import say
from tests.stack.ports import free_port

SLUGS: Final = ("acme", "globex")
# The pepper (a secret in the digests of API keys) is derived for this purpose. 1 is its version.
_PEPPER: Final = "key-pepper/1"
# Load shedding must not disturb a measurement, unless the measurement is about it.
UNSHED: Final = {
    f"CARET_FIRST_TOKEN_TARGET_{mode}_MS": "600000" for mode in ("INLINE", "FIM", "BLOCK", "CHAT")
}
# An engine on two busy cores may prefill 4,000 tokens for longer than the default of 10 s.
_LONG_STALL_LIMIT: Final = {"CARET_MAX_ENGINE_STALL_S": "25"}
# The environment of the user's shell may describe another installation.
_EXCLUDED_VARIABLES: Final = (
    "DATABASE_URL",
    "REDIS_URL",
    "CARET_OWNER_DATABASE_URL",
    "CARET_ROOT_SECRET",
)


@dataclass(frozen=True, slots=True)
class Running:
    gateway_url: str
    engine_url: str
    pools_file: Path  # the gateway's
    gateway_pid: int | None  # None: the gateway was not started here
    acme_key: str = field(repr=False)
    globex_key: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Home:
    paths: EmbeddedPaths
    environment: dict[str, str] = field(repr=False)
    tag: str  # of this home's processes, whose environment contains it


@contextmanager
def installation(up_file: Path | None) -> Iterator[Running]:
    """Yield the installation that `up_file` describes; None: start an engine, Valkey and a
    gateway."""
    if up_file is not None:
        yield _read_up_file(up_file)
        return
    with (
        create_home() as home,
        own_engine(home) as engine_url,
        own_gateway(home, engine_url=engine_url, replica=engine_url) as running,
    ):
        yield running


@contextmanager
def engine_of(up_file: Path | None, home: Home) -> Iterator[str]:
    """Yield the address of the engine of the running installation; None: start an engine."""
    if up_file is not None:
        yield _read_up_file(up_file).engine_url
        return
    with own_engine(home) as url:
        yield url


@contextmanager
def create_home() -> Iterator[Home]:
    """Create a temporary home: the folder CARET_HOME of an installation's files.

    Processes with its tag end when the block ends, even if this process is killed.
    """
    paths = EmbeddedPaths(Path(tempfile.mkdtemp(prefix="caret-bench-")))
    tag = new_tag(paths.home)
    inherited = {name: text for name, text in os.environ.items() if name not in _EXCLUDED_VARIABLES}
    environment = inherited | tag_environment(tag) | {"CARET_HOME": str(paths.home)}
    try:
        write_credentials(paths)
        with Watchdog(tag):
            yield Home(paths=paths, environment=environment, tag=tag)
    finally:
        for folder in (paths.home, paths.sockets):
            shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def own_engine(home: Home) -> Iterator[str]:
    settings = engine_from_environment(free_port())
    service = build_engine_service(settings, paths=home.paths, environment=home.environment)
    with started(service):
        yield settings.url


@contextmanager
def own_gateway(
    home: Home,
    *,
    engine_url: str,
    replica: ReplicaEntry,
    others: Sequence[ReplicaEntry] = (),
    pools: str | None = None,
) -> Iterator[Running]:
    """Start a gateway, and a Valkey that holds two tenants.

    The gateway reaches its engine at `replica`; `others` are further replicas of its pools. If
    `pools` is given, it is the text of the whole catalogue, and `replica` and `others` are not
    used. `engine_url` is the address for requests to the engine without a gateway.
    """
    port = free_port()
    with ExitStack() as stack:
        stack.enter_context(EmbeddedValkey(home.paths, tag_environment=tag_environment(home.tag)))
        acme_key, globex_key = (publish_tenant(home.paths, slug) for slug in SLUGS)
        service = build_gateway_service(
            home, port=port, replicas=[replica, *others], pools=pools, has_token_healing=True
        )
        stack.enter_context(started(service))
        yield Running(
            gateway_url=f"http://127.0.0.1:{port}",
            engine_url=engine_url,
            pools_file=home.paths.pools,
            gateway_pid=service.child.pid,
            acme_key=acme_key,
            globex_key=globex_key,
        )


def build_gateway_service(
    home: Home,
    *,
    port: int,
    replicas: Sequence[ReplicaEntry],
    metrics_port: int = 0,
    additions_from: Sequence[str] = (),
    edit_format: str = "",
    pools: str | None = None,
    has_token_healing: bool = False,
) -> CommandService:
    """Write the catalogue of pools and return the gateway's service, not yet launched.

    With metrics port 0, the gateway serves no metrics. By default, there are two pools, `fast` and
    `quality`, with the demonstration model. `additions_from` lists the networks and host names at
    which operators may add replicas. `edit_format` is that of the last pool's model; "" means that
    the model has none. `has_token_healing` is for real engines: others ignore the word at the
    cursor, and their completions would be dropped.
    """
    pools = pools or _render_pools(replicas, additions_from, has_token_healing=has_token_healing)
    if edit_format:
        pools += f'edit_format = "{edit_format}"\n'
    write_pools(home.paths.pools, pools)
    environment = (
        UNSHED
        | _LONG_STALL_LIMIT
        | home.environment
        | {
            "CARET_POOLS_FILE": str(home.paths.pools),
            "CARET_GATEWAY_PORT": str(port),
            "CARET_METRICS_PORT": str(metrics_port),
        }
    )
    return build_web_service("Gateway", port=port, paths=home.paths, environment=environment)


def _render_pools(
    replicas: Sequence[ReplicaEntry], additions_from: Sequence[str], *, has_token_healing: bool
) -> str:
    model = engine_from_environment(0).model
    return render_pools(
        model=model.served_name,
        tokenizer=model.path,
        max_context_tokens=MAX_CONTEXT_TOKENS,
        replicas=replicas,
        has_token_healing=has_token_healing,
        additions_from=additions_from,
    )


def publish_tenant(paths: EmbeddedPaths, slug: str) -> str:
    """Publish a new tenant and return the text of its only key."""
    snapshot, key_text = new_tenant(slug, root_secret=root_secret_of(paths))
    publish(paths, snapshot)
    return key_text


def root_secret_of(paths: EmbeddedPaths) -> bytes:
    return parse_root_secret(paths.root_secret.read_text().strip())


def publish(paths: EmbeddedPaths, snapshot: TenantSnapshot) -> None:
    """Publish a snapshot as the control plane does."""
    arguments = (snapshot.tenant_id, snapshot.version, encode_snapshot(snapshot), CHANGE_CHANNEL)
    redis_keys = (SNAPSHOTS, VERSIONS, CHANGE_COUNTER)
    with redis.Redis.from_url(paths.redis_url.read_text().strip()) as connection:
        connection.eval(PUBLISH_SCRIPT, len(redis_keys), *redis_keys, *arguments)


def new_tenant(slug: str, *, root_secret: bytes) -> tuple[TenantSnapshot, str]:
    """Return a tenant whose policy allows everything, and the text of its only key."""
    credential, key_text = new_credential(root_secret)
    policy = TenantPolicy(
        features=frozenset(Mode),
        content_exclusion={},
        max_concurrent_completions=64,
        isolation=Isolation.SHARED,
    )
    snapshot = TenantSnapshot(
        schema=SCHEMA,
        tenant_id=TenantId(str(uuid.uuid4())),
        slug=slug,
        version=1,
        status=TenantStatus.ACTIVE,
        cache_epoch=0,
        policy=policy,
        credentials=(credential,),
    )
    return snapshot, key_text


def new_credential(root_secret: bytes) -> tuple[Credential, str]:
    """Return the credential of an active key, and the key's text."""
    key = generate_key(KeyKind.DEVELOPER)
    credential = Credential(
        key_id=KeyId(str(uuid.uuid4())),
        lookup_id=key.lookup_id,
        digest=digest_key(derive_key(root_secret, _PEPPER), key),
        pepper_version=1,
        kind=KeyKind.DEVELOPER,
        user_id=UserId(str(uuid.uuid4())),
        expires_at_ms=None,
        revoked_at_ms=None,
    )
    return credential, key.text


@contextmanager
def started(service: Service) -> Iterator[None]:
    say(f"Starting {service.name}")
    service.launch()
    await_ready(service)
    try:
        yield
    finally:
        service.child.stop()


def _read_up_file(up_file: Path) -> Running:
    entry = json.loads(up_file.read_text())
    keys = {tenant["slug"]: tenant["api_key"] for tenant in entry["tenants"]}
    acme_key, globex_key = (keys[slug] for slug in SLUGS)
    # The gateway of the installation reads the catalogue that this variable names, if it is set.
    pools_file = Path(os.environ.get("CARET_POOLS_FILE") or up_file.with_name("pools.toml"))
    return Running(
        gateway_url=entry["gateway_url"],
        engine_url=read_pool_config(pools_file).find_shared(Tier.FAST).replicas[0].url,
        pools_file=pools_file,
        gateway_pid=None,
        acme_key=acme_key,
        globex_key=globex_key,
    )
