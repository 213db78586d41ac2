"""The health and the metrics of vLLM servers, from `/health` and `/metrics`."""

from collections import defaultdict
from http import HTTPStatus
from typing import Final

import aiohttp

from inference.pools.health.replica_states import HealthStatus
from inference.pools.pool_config import Replica
from inference.pools.vllm.response_body import read_body

_PREFIX: Final = "vllm:"
_MAX_BYTES: Final = 4 * 1024 * 1024  # of a response's body
# By a metric's name: its values, one for each combination of labels.
MetricValues = dict[str, list[float]]


class VllmMetrics:
    """Reads the metrics of vLLM servers."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def read(self, replica: Replica) -> MetricValues | None:
        """Return the metrics; None if the replica does not respond. The caller sets the timeout."""
        try:
            url = f"{replica.url}/metrics"
            async with self._session.get(url, allow_redirects=False) as response:
                if response.status != 200:
                    return None
                page = await read_body(response, max_bytes=_MAX_BYTES)
        except (aiohttp.ClientError, OSError):
            return None
        return parse_metrics(page.decode("utf-8", "replace"))


def parse_metrics(page: str) -> MetricValues:
    """Return vLLM's own metrics from Prometheus's text format. Skip malformed lines."""
    values: MetricValues = defaultdict(list)
    for line in page.splitlines():
        if not line.startswith(_PREFIX):
            continue
        name, _, labels_and_value = line.partition("{") if "{" in line else line.partition(" ")
        try:  # the value is the last word, because vLLM writes no timestamps
            value = float(labels_and_value.rpartition(" ")[2])
        except ValueError:
            continue
        values[name].append(value)
    return values


class VllmHealth:
    """The HealthCheck of vLLM servers."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def check(self, replica: Replica) -> HealthStatus:
        try:
            url = f"{replica.url}/health"
            async with self._session.get(url, allow_redirects=False) as response:
                status = response.status
        except aiohttp.ClientConnectorError:  # connection refused, or unknown host
            return HealthStatus.UNHEALTHY
        except (aiohttp.ClientError, OSError):  # lost connection: the replica may only be busy
            return HealthStatus.TIMED_OUT
        # vLLM responds with 503 if its engine is dead. Other servers, such as routers, may have no
        # `/health` and respond with 404. They count as healthy.
        has_failed = status >= HTTPStatus.INTERNAL_SERVER_ERROR
        return HealthStatus.UNHEALTHY if has_failed else HealthStatus.HEALTHY
