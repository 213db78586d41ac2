"""Networks from which a key may be used: both planes ask here, so that they agree.

An IPv4 address that comes as IPv6 (`::ffff:192.0.2.7`, as from a socket that takes both) is one of
IPv4, and so is a network that is written so.
"""

import ipaddress
from functools import lru_cache
from typing import Final, TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_MAPPED_BITS: Final = 96  # of ::ffff:0:0/96, which holds all of IPv4
_MAPPED: Final = ipaddress.IPv6Network("::ffff:0:0/96")
_MAX_CHARS: Final = 64


def parse_network(text: str) -> Network:
    """`192.0.2.0/24`, or one address. Raises ValueError for anything else, among it a network with
    bits behind its mask, and an IPv6 address with a zone."""
    if len(text) > _MAX_CHARS or "%" in text:
        raise ValueError
    network = ipaddress.ip_network(text)
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_MAPPED):
        mapped = network.network_address.ipv4_mapped
        return ipaddress.ip_network((str(mapped), network.prefixlen - _MAPPED_BITS))
    return network


def parse_address(text: str | None) -> Address | None:
    """None for what is no address: of a peer on a Unix socket there is none."""
    try:
        address = ipaddress.ip_address((text or "").partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def is_allowed(networks: tuple[str, ...], address: str | None) -> bool:
    """Whether a key with these networks may be used from the address; no networks: from anywhere.
    What cannot be read lets nobody in."""
    if not networks:
        return True
    found = parse_address(address)
    return found is not None and any(found in network for network in _parsed(networks))


def contains_all(wide: tuple[str, ...], narrow: tuple[str, ...]) -> bool:
    """Whether each address of `narrow` is one of `wide`, network by network."""
    if not wide:
        return True
    return bool(narrow) and all(
        any(_is_subnet(inner, outer) for outer in _parsed(wide)) for inner in _parsed(narrow)
    )


def _is_subnet(inner: Network, outer: Network) -> bool:
    if isinstance(inner, ipaddress.IPv4Network) and isinstance(outer, ipaddress.IPv4Network):
        return inner.subnet_of(outer)
    if isinstance(inner, ipaddress.IPv6Network) and isinstance(outer, ipaddress.IPv6Network):
        return inner.subnet_of(outer)
    return False


@lru_cache(maxsize=8_192)
def _parsed(networks: tuple[str, ...]) -> tuple[Network, ...]:
    """Once a key: it is asked at each request."""
    return tuple(map(parse_network, networks))
