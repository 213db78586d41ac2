"""How a vLLM server says that it is well: `GET /health`."""

from http import HTTPStatus

import aiohttp

from inference.pools.health.replica_states import HealthStatus
from inference.pools.pool_config import Replica


class VllmHealth:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def check(self, replica: Replica) -> HealthStatus:
        try:
            url = f"{replica.url}/health"
            async with self._session.get(url, allow_redirects=False) as response:
                status = response.status
        except aiohttp.ClientConnectorError:  # refused, or no such host
            return HealthStatus.UNHEALTHY
        except (aiohttp.ClientError, OSError):
            return HealthStatus.TIMED_OUT
        # 503: its engine is dead. What is no vLLM server, such as a router, may not know the path.
        is_ill = status >= HTTPStatus.INTERNAL_SERVER_ERROR
        return HealthStatus.UNHEALTHY if is_ill else HealthStatus.HEALTHY
