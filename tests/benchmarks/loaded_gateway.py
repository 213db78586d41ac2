"""A gateway in front of the synthetic engine, and a company: a tenant whose developers have keys.

The gateway checks the tenant's limits, but no load reaches them. Redis runs, Postgres does not.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

import msgspec

from caret.contracts.policy import Isolation, Mode, PolicyLimits, RateLimit, TenantPolicy, Tier
from caret.contracts.snapshot import SCHEMA, TenantSnapshot, TenantStatus
from caret.foundation.ids import TenantId
from caret.local.caret_services import manage_command
from caret.local.databases.valkey import EmbeddedValkey
from caret.local.engines.engine import MAX_CONTEXT_TOKENS, engine_from_environment
from caret.local.engines.pools_file import render_pools, write_pools
from caret.local.processes.process_tag import tag_environment
from tests.benchmarks.installation import (
    UNSHED,
    Home,
    new_credential,
    publish,
    root_secret_of,
)
from tests.benchmarks.processes import Cores, Program, pinned_to, running
from tests.stack.ports import free_port

_ENDLESS: Final = RateLimit(per_minute=10_000_000, burst=1_000_000)
_MAX_COMPLETIONS: Final = 8_192
_MAX_CONNECTIONS_PER_KEY: Final = 1_000


@dataclass(frozen=True, slots=True)
class Company:
    snapshot: TenantSnapshot
    keys: Sequence[str] = field(repr=False)  # one for each developer


@dataclass(frozen=True, slots=True)
class Gateway:
    url: str
    pid: int


def new_company(home: Home, *, num_developers: int) -> Company:
    """Return a new company. `redis_of` publishes it."""
    secret = root_secret_of(home.paths)
    credentials = [new_credential(secret) for _ in range(num_developers)]
    policy = TenantPolicy(
        features=frozenset(Mode),
        content_exclusion={"*": ("**/secrets/**", "**/*.pem")},
        max_concurrent_completions=_MAX_COMPLETIONS,
        isolation=Isolation.SHARED,
        limits=PolicyLimits(
            tenant=_ENDLESS,
            user=_ENDLESS,
            key=_ENDLESS,
            tokens_per_day=dict.fromkeys(Tier, 10**12),
        ),
    )
    snapshot = TenantSnapshot(
        schema=SCHEMA,
        tenant_id=TenantId(str(uuid.uuid4())),
        slug="load",
        version=1,
        status=TenantStatus.ACTIVE,
        cache_epoch=0,
        policy=policy,
        credentials=tuple(credential for credential, _ in credentials),
    )
    return Company(snapshot, [text for _, text in credentials])


@contextmanager
def loaded_gateway(
    home: Home,
    *,
    engine_url: str,
    company: Company,
    cores: tuple[Cores, Cores],
    command: Sequence[str] = manage_command("gateway"),
) -> Iterator[Gateway]:
    """Run the gateway on the first of `cores` and Redis on the second."""
    own_cores, other_cores = cores
    with redis_of(home, company, cores=other_cores):
        program, url = gateway_program(home, [engine_url], command=command)
        with running(home, program, cores=own_cores) as pid:
            yield Gateway(url, pid)


@contextmanager
def redis_of(home: Home, company: Company, *, cores: Cores) -> Iterator[None]:
    """Run Redis with the company published."""
    with pinned_to(cores), EmbeddedValkey(home.paths, tag_environment=tag_environment(home.tag)):
        publish(home.paths, company.snapshot)
        yield


def gateway_program(
    home: Home,
    engine_urls: Sequence[str],
    *,
    name: str = "gateway",
    command: Sequence[str] = manage_command("gateway"),
) -> tuple[Program, str]:
    """Write the catalogue of pools, and return the gateway's program and its URL.

    `name` distinguishes several gateways.
    """
    port = free_port()
    model = engine_from_environment(0).model
    pools = render_pools(
        model=model.served_name,
        tokenizer=model.path,
        max_context_tokens=MAX_CONTEXT_TOKENS,
        replicas=list(engine_urls),
        has_token_healing=False,
    )
    write_pools(home.paths.pools, pools)
    url = f"http://127.0.0.1:{port}"
    program = Program(
        name=name,
        command=command,
        ready_url=f"{url}/healthz",
        environment=UNSHED
        | {
            "CARET_POOLS_FILE": str(home.paths.pools),
            "CARET_GATEWAY_PORT": str(port),
            "CARET_MAX_CONCURRENT_COMPLETIONS": str(_MAX_COMPLETIONS),
            "CARET_MAX_TENANT_CONCURRENCY_PERCENT": "100",
            "CARET_MAX_CONNECTIONS_PER_KEY": str(_MAX_CONNECTIONS_PER_KEY),
            "CARET_METRICS_PORT": str(free_port()),
        },
    )
    return program, url


def frame_of(identifier: str, *, path: str, prefix: str, suffix: str) -> bytes:
    """Return a `complete` frame of `caret.v1`."""
    return msgspec.json.encode(
        {
            "type": "complete",
            "id": identifier,
            "mode": "inline",
            "path": path,
            "language": "python",
            "prefix": prefix,
            "suffix": suffix,
            "repository": {"name": "load"},
        }
    )
