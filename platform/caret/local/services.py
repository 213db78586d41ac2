"""The services that `up` starts, and their environment."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from caret.local.caret_services import build_beat_service, build_web_service, build_worker_service
from caret.local.databases.postgres import EmbeddedPostgres
from caret.local.databases.valkey import EmbeddedValkey
from caret.local.engines.embedding_engine import build_embeddings_service
from caret.local.engines.engine import MAX_CONTEXT_TOKENS, build_engine_service, first_token_targets
from caret.local.engines.kv_tier import build_kv_tier_services
from caret.local.engines.pools_file import render_pools, write_pools
from caret.local.ports import LOOPBACK, Port
from caret.local.processes.preloaded import PreloadedService
from caret.local.processes.process_tag import tag_environment
from caret.local.processes.service import CommandService, Service
from caret.local.up_settings import UpSettings

OPERATOR_PATH: Final = "CARET_OPERATOR_ADMIN_PATH"


@dataclass(frozen=True, slots=True)
class Services:
    postgres: Service | None  # None: a setting names the user's own server
    valkey: Service | None  # None: a setting names the user's own server
    kv_tier: tuple[Service, ...]  # in the order of their start; empty: there is no KV tier
    # In the order of `UpSettings.engines`; empty: the user's own engines.
    completion_engines: tuple[Service, ...]
    embeddings: Service | None  # None: the user's own embedding engine, or retrieval is off
    gateway: Service
    console: Service
    worker: Service
    beat: Service

    @property
    def foundations(self) -> tuple[Service, ...]:
        return tuple(service for service in (self.postgres, self.valkey) if service is not None)

    @property
    def engines(self) -> tuple[Service, ...]:
        embeddings = () if self.embeddings is None else (self.embeddings,)
        return (*self.completion_engines, *embeddings)

    @property
    def programs(self) -> tuple[Service, ...]:
        return (self.gateway, self.console, self.worker, self.beat)


def make_services(settings: UpSettings, *, tag: str) -> Services:
    """Return the services, without starting them, and write the pools file."""
    paths = settings.paths
    environment = environment_of_children(settings, tag=tag)
    tag_variables = tag_environment(tag)
    return Services(
        postgres=None
        if settings.has_own_postgres
        else EmbeddedPostgres(paths, tag_environment=tag_variables),
        valkey=None
        if settings.has_own_redis
        else EmbeddedValkey(paths, tag_environment=tag_variables),
        kv_tier=()
        if settings.kv_tier is None
        else build_kv_tier_services(
            settings.kv_tier, paths=paths, environment=environment, tag_environment=tag_variables
        ),
        completion_engines=_make_engines(settings, environment=environment),
        embeddings=_make_embedding_engine(settings, environment=environment),
        gateway=_make_web_service("Gateway", settings.ports.gateway, settings, environment),
        console=_make_console(settings, environment),
        worker=build_worker_service(
            paths=paths,
            environment=environment,
            # An embedding or a webhook may take seconds, an export or an erasure minutes. While one
            # of each runs, a third process is free for usage records.
            concurrency=3,
        ),
        beat=build_beat_service(paths=paths, environment=environment),
    )


def environment_of_children(settings: UpSettings, *, tag: str) -> dict[str, str]:
    """Return the environment of Caret's processes.

    Defaults come first. The supervisor's own environment overrides them, and the paths and ports of
    the installation override both.
    """
    targets = {} if settings.own_pools else first_token_targets(settings.engines[0])
    return (
        targets
        | {
            "CARET_ALLOWED_ORIGINS": ",".join(_origins_of(settings.ports.console)),
            OPERATOR_PATH: "operators",
        }
        | dict(os.environ)
        | tag_environment(tag)
        | {
            "CARET_HOME": str(settings.paths.home),
            "CARET_POOLS_FILE": str(settings.pools_file),
            "CARET_GATEWAY_PORT": str(settings.ports.gateway.number),
            "CARET_CONSOLE_PORT": str(settings.ports.console.number),
            "CARET_EMBEDDINGS_PORT": str(settings.ports.embeddings.number),
        }
    )


def _origins_of(console: Port) -> list[str]:
    """Return the origins that the console's pages may have in a browser on this machine.

    The gateway must allow them, because the console's playground calls the gateway.
    """
    origins = (
        console.url,
        f"http://{LOOPBACK}:{console.number}",
        f"http://localhost:{console.number}",
    )
    return list(dict.fromkeys(origins))  # without duplicates


def _make_engines(settings: UpSettings, *, environment: Mapping[str, str]) -> tuple[Service, ...]:
    """Return the engines and write the pools file, unless CARET_POOLS_FILE names another file."""
    if settings.own_pools is not None:
        return ()
    model = settings.engines[0].model
    write_pools(
        settings.paths.pools,
        render_pools(
            model=model.served_name,
            tokenizer=model.path,
            max_context_tokens=MAX_CONTEXT_TOKENS,
            replicas=settings.replicas,
        ),
    )
    return tuple(
        build_engine_service(engine, paths=settings.paths, environment=environment)
        for engine in settings.engines
    )


def _make_embedding_engine(
    settings: UpSettings, *, environment: Mapping[str, str]
) -> Service | None:
    if settings.embeddings is None:
        return None
    return build_embeddings_service(
        settings.embeddings, paths=settings.paths, environment=environment
    )


def _make_console(settings: UpSettings, environment: Mapping[str, str]) -> Service:
    service = _make_web_service("Console", settings.ports.console, settings, environment)
    return PreloadedService(service) if settings.has_reload else service


def _make_web_service(
    name: str, port: Port, settings: UpSettings, environment: Mapping[str, str]
) -> CommandService:
    return build_web_service(
        name,
        port=port.number,
        host=port.reachable_host,
        paths=settings.paths,
        environment=environment,
    )
