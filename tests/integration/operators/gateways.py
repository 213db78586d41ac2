"""A real gateway for the operators' pages.

It reads drained and added replicas from the Valkey of the test session. Its engine is a fake that
reports ENGINE_METRICS.
"""

import http.client
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast
from urllib.parse import urlsplit

import redis

from caret.contracts.added_replicas import ADDITIONS, ADDITIONS_LOG, ADDITIONS_VERSION
from caret.contracts.drained_replicas import DRAINS, DRAINS_LOG, DRAINS_VERSION
from caret.contracts.snapshot import CHANGE_COUNTER, SNAPSHOTS, VERSIONS
from caret.contracts.usage import USAGE_STREAM
from tests.benchmarks.installation import (
    UNSHED,
    build_gateway_service,
    create_home,
    new_tenant,
    publish,
    root_secret_of,
    started,
)
from tests.fakes.scripted_engine import ScriptedEngine, scripted_engine
from tests.stack.ports import free_ports
from tests.stack.services import Services
from tests.stack.waiting import wait_until

TIMEOUT_S = 120.0  # usually a second, but other tests may use all cores
ENGINE_METRICS = {
    "num_requests_running": 3.0,
    "num_requests_waiting": 2.0,
    "kv_cache_usage_perc": 0.625,
    "prefix_cache_queries_total": 8_000.0,
    "prefix_cache_hits_total": 7_400.0,
}


@dataclass(frozen=True, slots=True)
class Gateway:
    url: str
    metrics: str  # base URL of its metrics
    engine: ScriptedEngine
    replicas: tuple[str, ...]  # names; all of them are the same engine
    tenant_id: str
    key: str = field(repr=False)

    def complete(self, prompt: str = "a = ", *, path: str = "") -> None:
        """Run one completion to its end."""
        body = {"prompt": prompt, "suffix": "\n", "max_tokens": 1, "path": path}
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=TIMEOUT_S)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        connection.request("POST", "/v1/fim/completions", json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        assert response.status == 200, text

    def has_metric(self, line: str) -> bool:
        """Return whether the metrics contain the line, which may be cut off."""
        return line in self.page("/metrics").decode()

    def page(self, path: str) -> bytes:
        """Return a page of the server of metrics."""
        connection = http.client.HTTPConnection(urlsplit(self.metrics).netloc, timeout=TIMEOUT_S)
        connection.request("GET", path)
        body = connection.getresponse().read()
        connection.close()
        return body

    def wait_for_metric(self, line: str) -> None:
        wait_until(lambda: self.has_metric(line), timeout_s=TIMEOUT_S)


@contextmanager
def own_gateway(services: Services) -> Iterator[Gateway]:
    """Run a gateway with two replicas: one fake engine under two host names."""
    with ExitStack() as stack:
        engine = stack.enter_context(
            scripted_engine(metrics=dict(ENGINE_METRICS), cached_tokens=1_000)
        )
        home = stack.enter_context(create_home())
        environment = {
            **home.environment,
            **UNSHED,
            "REDIS_URL": services.redis_url,
            "CARET_ENGINE_METRICS_INTERVAL_S": "1",
            "CARET_PUBLIC_CODE_FOLDER": str(services.paths.home / "public-code"),
        }
        home = replace(home, environment=environment)
        urls = (engine.url, engine.url.replace("127.0.0.1", "localhost"))
        port, metrics_port = free_ports(2)
        snapshot, key = new_tenant("initech", root_secret=root_secret_of(home.paths))
        stack.enter_context(_restore_redis_afterwards(services, snapshot.tenant_id))
        publish(services.paths, snapshot)
        service = build_gateway_service(
            home,
            port=port,
            replicas=urls,
            metrics_port=metrics_port,
            additions_from=("10.12.0.0/16", "localhost"),
        )
        stack.enter_context(started(service))
        gateway = Gateway(
            url=f"http://127.0.0.1:{port}",
            metrics=f"http://127.0.0.1:{metrics_port}",
            engine=engine,
            replicas=tuple(url.removeprefix("http://") for url in urls),
            tenant_id=snapshot.tenant_id,
            key=key,
        )
        gateway.wait_for_metric("caret_engine_requests_running")
        yield gateway


@contextmanager
def _restore_redis_afterwards(services: Services, tenant_id: str) -> Iterator[None]:
    """Restore the usage stream and the snapshots, which other tests of the session read.

    Drains and added replicas are deleted.
    """
    with redis.Redis.from_url(services.redis_url) as connection:
        # The ID of this entry tells later entries from earlier ones.
        marker = cast(bytes, connection.xadd(USAGE_STREAM, {"marker": b""}))
        connection.xdel(USAGE_STREAM, marker)
        try:
            yield
        finally:
            for redis_key in (SNAPSHOTS, VERSIONS):
                connection.hdel(redis_key, tenant_id)
            connection.incr(CHANGE_COUNTER)
            forget_drains(connection)
            forget_additions(connection)
            # "(": only entries after the marker.
            entries = cast(Any, connection.xrange(USAGE_STREAM, min=b"(" + marker))
            if added_ids := [entry_id for entry_id, _ in entries]:
                connection.xdel(USAGE_STREAM, *added_ids)


def forget_drains(connection: redis.Redis) -> None:
    """Delete all drains, and notify gateways."""
    connection.delete(DRAINS, DRAINS_LOG)
    connection.incr(DRAINS_VERSION)


def forget_additions(connection: redis.Redis) -> None:
    """Delete all additions, and notify gateways."""
    connection.delete(ADDITIONS, ADDITIONS_LOG)
    connection.incr(ADDITIONS_VERSION)
