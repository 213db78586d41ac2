"""Scraping of gateways' metrics on their private port, concurrently, with limits of time and size.

A gateway that does not answer is reported as such and does not delay the others.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_network
from typing import Final, TypeVar

from django.conf import settings

from caret.foundation.egress.http_client import (
    OutboundRequest,
    RequestFailed,
    ResponseLimits,
    send_request,
)
from tenants.fleet.pools.scraping.metric_samples import MetricSamples, parse_metrics

BOUNDS: Final = ResponseLimits(total_s=1.5, max_bytes=8 * 1024 * 1024)
_MAX_AT_ONCE: Final = 16
# The addresses come from the operator's own setting, so any address is allowed.
_ALL_NETWORKS: Final = (ip_network("0.0.0.0/0"), ip_network("::/0"))

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scrape:
    gateway: str  # its address in the setting
    samples: MetricSamples | None  # None: no response, or no metrics in it
    problem: str  # "": no problem


def list_gateway_addresses() -> list[str]:
    addresses: list[str] = settings.GATEWAY_METRICS
    return addresses


def scrape_gateways() -> list[Scrape]:
    """Scrape all gateways, concurrently. Return the results in the order of the setting."""
    return query_all_gateways(_scrape_gateway)


def query_all_gateways(ask: Callable[[str], T]) -> list[T]:
    """Call `ask` with the address of each gateway, concurrently."""
    addresses = list_gateway_addresses()
    if not addresses:
        return []
    with ThreadPoolExecutor(min(_MAX_AT_ONCE, len(addresses))) as pool:
        return list(pool.map(ask, addresses))


def fetch_from_gateway(address: str, path: str) -> bytes:
    """Fetch a path from a gateway. Raises RequestFailed."""
    response = send_request(
        OutboundRequest("GET", address.rstrip("/") + path, {}), _ALL_NETWORKS, BOUNDS
    )
    if response.status != HTTPStatus.OK:
        raise RequestFailed(f"The gateway responded with status {response.status}.")
    return response.body


def _scrape_gateway(address: str) -> Scrape:
    try:
        return Scrape(
            address,
            parse_metrics(fetch_from_gateway(address, "/metrics").decode("utf-8", "replace")),
            "",
        )
    except RequestFailed as error:
        return Scrape(address, None, str(error))
    except ValueError:
        return Scrape(address, None, "The response contains no metrics.")
