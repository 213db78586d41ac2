"""Scraping of the gateways' metrics on their private ports.

Up to 16 gateways are scraped concurrently, with limits of time and size. A gateway that does not
respond is reported as unreachable. It delays others only if there are more than 16 gateways.
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

BOUNDS: Final = ResponseLimits(total_s=1.5, max_bytes=8 * 1024 * 1024)  # of each gateway
_MAX_AT_ONCE: Final = 16
# Any IP address is allowed, because the URLs come from the installation's own setting.
_ALL_NETWORKS: Final = (ip_network("0.0.0.0/0"), ip_network("::/0"))

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scrape:
    """The result of scraping one gateway."""

    gateway: str  # its URL in the setting
    samples: MetricSamples | None  # None: no response, or no metrics in it
    problem: str  # why there are no samples; "": no problem


def list_gateway_urls() -> list[str]:
    urls: list[str] = settings.GATEWAY_METRICS
    return urls


def scrape_gateways() -> list[Scrape]:
    """Scrape all gateways, concurrently. Return the results in the order of the setting."""
    return query_all_gateways(_scrape_gateway)


def query_all_gateways(query: Callable[[str], T]) -> list[T]:
    """Call `query` with the URL of each gateway, concurrently.

    Return the results in the order of the setting.
    """
    urls = list_gateway_urls()
    if not urls:
        return []
    with ThreadPoolExecutor(min(_MAX_AT_ONCE, len(urls))) as executor:
        return list(executor.map(query, urls))


def fetch_from_gateway(gateway_url: str, path: str) -> bytes:
    """Fetch a path from a gateway within BOUNDS. Raises RequestFailed."""
    response = send_request(
        OutboundRequest("GET", gateway_url.rstrip("/") + path, {}), _ALL_NETWORKS, BOUNDS
    )
    if response.status != HTTPStatus.OK:
        raise RequestFailed(f"The gateway responded with status {response.status}.")
    return response.body


def _scrape_gateway(gateway_url: str) -> Scrape:
    try:
        return Scrape(
            gateway_url,
            parse_metrics(fetch_from_gateway(gateway_url, "/metrics").decode("utf-8", "replace")),
            "",
        )
    except RequestFailed as error:
        return Scrape(gateway_url, None, str(error))
    except ValueError:
        return Scrape(gateway_url, None, "The response contains no metrics.")
