"""Recording of what the gateways can do, from their metrics (tenants.policy.enforcement)."""

from collections.abc import Iterable
from datetime import datetime

from tenants.fleet.pools.scraping.gateway_scraper import Scrape
from tenants.fleet.pools.scraping.metric_samples import MetricSamples
from tenants.models import CapabilityChange
from tenants.policy.enforcement import REGION_PREFIX, Capability


def record_capabilities(readings: Iterable[Scrape], *, now: datetime) -> None:
    """Record what has changed since the last report. Nothing is known if no gateway responds."""
    listed = list(readings)
    reports = [each.samples for each in listed if each.samples is not None]
    if not reports:
        return
    rows = CapabilityChange.objects.order_by("capability", "-since").distinct("capability")
    current = dict(rows.values_list("capability", "is_available"))
    found = find_capabilities(reports)
    if len(reports) == len(listed):  # otherwise the region may have a gateway that does not respond
        gone = (name for name in current if name.startswith(REGION_PREFIX) and name not in found)
        found |= dict.fromkeys(gone, False)
    CapabilityChange.objects.bulk_create(
        [
            CapabilityChange(capability=name, is_available=is_available, since=now)
            for name, is_available in found.items()
            if current.get(name) is not is_available
        ],
        ignore_conflicts=True,  # another worker recorded the same
    )


def find_capabilities(reports: Iterable[MetricSamples]) -> dict[str, bool]:
    """Return whether all gateways have each capability, and the regions with a gateway. Pure."""
    found: dict[str, bool] = {}
    for samples in reports:
        for labels, value in samples.all_values("caret_gateway_capability"):
            name = labels["capability"]
            if name in set(Capability):
                found[name] = found.get(name, True) and bool(value)
        for labels, _ in samples.all_values("caret_gateway_region"):
            found[f"{REGION_PREFIX}{labels['region']}"[:64]] = True
    return found
