"""The fields of Kubernetes EndpointSlices (discovery.k8s.io/v1) that the gateway reads."""

from collections.abc import Iterable
from typing import Final

import msgspec

# In order of preference, for pods with addresses of both families.
_FAMILIES: Final = ("IPv4", "IPv6")


class _Conditions(msgspec.Struct, frozen=True):
    ready: bool | None = None  # None counts as ready, as the API defines


class _Target(msgspec.Struct, frozen=True):
    uid: str = ""


class _SliceEndpoint(msgspec.Struct, frozen=True, rename="camel"):
    addresses: list[str] = []  # IP addresses of one pod, interchangeable: use the first
    conditions: _Conditions = _Conditions()
    target_ref: _Target | None = None  # the pod


class Metadata(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""


class EndpointSlice(msgspec.Struct, frozen=True, rename="camel"):
    """Some endpoints of a service, all of one address family."""

    metadata: Metadata = Metadata()
    address_type: str = ""
    endpoints: list[_SliceEndpoint] | None = None


class EndpointSliceList(msgspec.Struct, frozen=True):
    """All slices of a service at one time. The resource version in `metadata` names that time."""

    metadata: Metadata
    items: list[EndpointSlice]


class WatchEvent(msgspec.Struct, frozen=True):
    type: str  # ADDED | MODIFIED | DELETED | BOOKMARK (only a newer version) | ERROR
    object: msgspec.Raw  # an EndpointSlice; for ERROR a KubernetesStatus


class KubernetesStatus(msgspec.Struct, frozen=True):
    code: int = 0  # HTTP status


def find_ready_addresses(slices: Iterable[EndpointSlice]) -> frozenset[str]:
    """Return one IP address of each ready pod."""
    addresses: dict[str, str] = {}  # by the pod's UID, or by the address if there is no UID
    all_slices = tuple(slices)
    for family in _FAMILIES:
        for endpoint in _list_endpoints(
            endpoint_slice for endpoint_slice in all_slices if endpoint_slice.address_type == family
        ):
            if endpoint.conditions.ready is not False and endpoint.addresses:
                address = endpoint.addresses[0]
                pod = endpoint.target_ref.uid if endpoint.target_ref else ""
                addresses.setdefault(pod or address, address)
    return frozenset(addresses.values())


def _list_endpoints(slices: Iterable[EndpointSlice]) -> Iterable[_SliceEndpoint]:
    return (endpoint for endpoint_slice in slices for endpoint in endpoint_slice.endpoints or ())
