"""What Kubernetes says of a service's endpoints (EndpointSlices, discovery.k8s.io/v1), as far as it
matters here; everything else of them is skipped."""

from collections.abc import Iterable
from typing import Final

import msgspec

# In this order: of a pod with both, the first one stands for it.
_FAMILIES: Final = ("IPv4", "IPv6")


class _Conditions(msgspec.Struct, frozen=True):
    ready: bool | None = None  # None: to be taken for ready, as the API has it


class _Target(msgspec.Struct, frozen=True):
    uid: str = ""


class _Endpoint(msgspec.Struct, frozen=True, rename="camel"):
    addresses: list[str] = []  # interchangeable: the first is to be used
    conditions: _Conditions = _Conditions()
    target_ref: _Target | None = None  # its pod


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""


class EndpointSlice(msgspec.Struct, frozen=True, rename="camel"):
    """Some of a service's endpoints, of one family of addresses."""

    metadata: Metadata = Metadata()
    address_type: str = ""
    endpoints: list[_Endpoint] | None = None


class EndpointSliceList(msgspec.Struct, frozen=True):
    """All slices at one moment, which is the version of its metadata."""

    metadata: Metadata
    items: list[EndpointSlice]


class WatchEvent(msgspec.Struct, frozen=True):
    type: str  # ADDED | MODIFIED | DELETED | BOOKMARK (no change, but a later version) | ERROR
    object: msgspec.Raw  # a slice; of ERROR a status


class KubernetesStatus(msgspec.Struct, frozen=True):
    code: int = 0


def ready_addresses(slices: Iterable[EndpointSlice]) -> frozenset[str]:
    """Of each pod one."""
    found: dict[str, str] = {}  # by pod
    every = tuple(slices)
    for family in _FAMILIES:
        for endpoint in _endpoints(each for each in every if each.address_type == family):
            if endpoint.conditions.ready is not False and endpoint.addresses:
                address = endpoint.addresses[0]
                pod = endpoint.target_ref.uid if endpoint.target_ref else ""
                found.setdefault(pod or address, address)
    return frozenset(found.values())


def _endpoints(slices: Iterable[EndpointSlice]) -> Iterable[_Endpoint]:
    return (endpoint for each in slices for endpoint in each.endpoints or ())
