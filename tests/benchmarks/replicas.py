"""Real engines of the demonstration model that publish KV events. Each has its own home folder."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from caret.local.engines.engine import build_engine_service, engine_from_environment
from caret.local.engines.pools_file import ReplicaEntry
from caret.local.processes.service import Service, await_ready
from tests.benchmarks.installation import create_home
from tests.benchmarks.results import say
from tests.stack.ports import free_port


@dataclass(frozen=True, slots=True)
class OwnReplica:
    url: str
    name: str  # host:port
    entry: ReplicaEntry  # of the replica, in the pools file
    service: Service

    def restart(self) -> None:
        self.service.launch()
        await_ready(self.service)


@contextmanager
def own_replicas(count: int) -> Iterator[list[OwnReplica]]:
    """Start this many equal replicas."""
    no_arguments: tuple[str, ...] = ()
    with own_replicas_of(*([no_arguments] * count)) as replicas:
        yield replicas


@contextmanager
def own_replicas_of(*arguments: tuple[str, ...]) -> Iterator[list[OwnReplica]]:
    """Start a replica for each item of `arguments`: the additional arguments of its engine.

    The replicas start in parallel: a start uses only one core.
    """
    with ExitStack() as stack:
        replicas = [_launch_replica(stack, replica_arguments) for replica_arguments in arguments]
        for replica in replicas:
            say(f"Starting {replica.name}")
            await_ready(replica.service)
        yield replicas


def _launch_replica(stack: ExitStack, arguments: tuple[str, ...]) -> OwnReplica:
    home = stack.enter_context(create_home())
    port, events_port, replay_port = (free_port() for _ in range(3))
    events, replay = f"tcp://127.0.0.1:{events_port}", f"tcp://127.0.0.1:{replay_port}"
    settings = engine_from_environment(port)
    publishing = _make_kv_event_arguments(events, replay)
    settings = replace(
        settings,
        extra_arguments=(*settings.extra_arguments, *publishing, *arguments),
    )
    service = build_engine_service(settings, paths=home.paths, environment=home.environment)
    service.launch()
    # The lambda looks `child` up when it is called, because a restart replaces the child.
    stack.callback(lambda: service.child.stop())
    return OwnReplica(
        url=settings.url,
        name=settings.url.removeprefix("http://"),
        entry={
            **settings.entry,
            "kv_events": events,
            "kv_replay": replay,
        },
        service=service,
    )


def _make_kv_event_arguments(events: str, replay: str) -> tuple[str, str]:
    """Return the arguments that make vLLM publish KV events.

    vLLM binds `endpoint` if it contains a star, but connects to it if it is the address of a host
    (see vLLM's `_is_bind_endpoint`). vLLM always binds `replay_endpoint`.
    """
    bound = events.replace("127.0.0.1", "*")
    config = {
        "enable_kv_cache_events": True,
        "publisher": "zmq",
        "endpoint": bound,
        "replay_endpoint": replay,
    }
    return ("--kv-events-config", json.dumps(config))
