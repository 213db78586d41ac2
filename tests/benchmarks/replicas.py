"""Several real engines of the demonstration model that publish KV events, each with its own
home."""

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
    entry: ReplicaEntry  # of the catalogue
    part: Service

    def restart(self) -> None:
        self.part.launch()
        await_ready(self.part)


@contextmanager
def own_replicas(count: int) -> Iterator[list[OwnReplica]]:
    with own_replicas_of(*([()] * count)) as replicas:
        yield replicas


@contextmanager
def own_replicas_of(*arguments: tuple[str, ...]) -> Iterator[list[OwnReplica]]:
    """Start one replica for each of these arguments.

    They start in parallel: most of a start is spent waiting for one core.
    """
    with ExitStack() as stack:
        replicas = [_launched(stack, replica_arguments) for replica_arguments in arguments]
        for replica in replicas:
            say(f"Starting {replica.name}")
            await_ready(replica.part)
        yield replicas


def _launched(stack: ExitStack, arguments: tuple[str, ...]) -> OwnReplica:
    home = stack.enter_context(create_home())
    port, events, replay = (free_port() for _ in range(3))
    settings = engine_from_environment(port)
    publishing = _publishing(f"tcp://127.0.0.1:{events}", f"tcp://127.0.0.1:{replay}")
    settings = replace(
        settings,
        extra_arguments=(*settings.extra_arguments, *publishing, *arguments),
    )
    part = build_engine_service(settings, paths=home.paths, environment=home.environment)
    part.launch()
    stack.callback(lambda: part.child.stop())  # looked up late: a restart replaces the child
    return OwnReplica(
        url=settings.url,
        name=settings.url.removeprefix("http://"),
        entry={
            **settings.entry,
            "kv_events": f"tcp://127.0.0.1:{events}",
            "kv_replay": f"tcp://127.0.0.1:{replay}",
        },
        part=part,
    )


def _publishing(events: str, replay: str) -> tuple[str, str]:
    """Return the arguments that make vLLM publish KV events.

    vLLM binds an address that has a star, and connects to any other: see `_is_bind_endpoint`.
    """
    bound = events.replace("127.0.0.1", "*")
    config = {
        "enable_kv_cache_events": True,
        "publisher": "zmq",
        "endpoint": bound,
        "replay_endpoint": replay,
    }
    return ("--kv-events-config", json.dumps(config))
