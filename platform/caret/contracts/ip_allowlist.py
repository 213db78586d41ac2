"""Networks from which an API key may be used. Control plane and data plane use the same checks.

An IPv4 address in IPv6 form (`::ffff:192.0.2.7`, as a dual-stack socket reports it) counts as IPv4.
A network in that form counts as an IPv4 network.
"""

import ipaddress
from functools import lru_cache
from typing import Final, TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_MAPPED_BITS: Final = 96  # prefix length of ::ffff:0:0/96, which contains all of IPv4
_MAPPED: Final = ipaddress.IPv6Network("::ffff:0:0/96")
_MAX_CHARS: Final = 64  # of a network's text; the longest valid one is shorter


def parse_network(text: str) -> Network:
    """Parse a network such as `192.0.2.0/24`, or a single address.

    A network with host bits set and an IPv6 address with a zone are invalid. Raises ValueError.
    """
    if len(text) > _MAX_CHARS or "%" in text:
        raise ValueError
    network = ipaddress.ip_network(text)
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_MAPPED):
        ipv4 = network.network_address.ipv4_mapped
        return ipaddress.ip_network((str(ipv4), network.prefixlen - _MAPPED_BITS))
    return network


def parse_address(text: str | None) -> Address | None:
    """Parse an address and drop its zone.

    Return None if `text` is not an address. `text` is None for a peer on a Unix socket.
    """
    try:
        address = ipaddress.ip_address((text or "").partition("%")[0])
    except ValueError:
        return None
    ipv4 = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return ipv4 or address


def is_allowed(networks: tuple[str, ...], address: str | None) -> bool:
    """Return whether a key with these networks may be used from the address.

    A key without networks may be used from anywhere. An address that cannot be parsed is not
    allowed.
    """
    if not networks:
        return True
    parsed_address = parse_address(address)
    return parsed_address is not None and any(
        parsed_address in network for network in _parse_networks(networks)
    )


def contains_all(wide: tuple[str, ...], narrow: tuple[str, ...]) -> bool:
    """Return whether each network of `narrow` lies within a network of `wide`.

    An empty tuple stands for all networks.
    """
    if not wide:
        return True
    return bool(narrow) and all(
        any(_is_subnet(inner, outer) for outer in _parse_networks(wide))
        for inner in _parse_networks(narrow)
    )


def _is_subnet(inner: Network, outer: Network) -> bool:
    """Return whether `inner` lies within `outer`; False if their IP versions differ."""
    if isinstance(inner, ipaddress.IPv4Network) and isinstance(outer, ipaddress.IPv4Network):
        return inner.subnet_of(outer)
    if isinstance(inner, ipaddress.IPv6Network) and isinstance(outer, ipaddress.IPv6Network):
        return inner.subnet_of(outer)
    return False


@lru_cache(maxsize=8_192)
def _parse_networks(networks: tuple[str, ...]) -> tuple[Network, ...]:
    """Parse the networks of a key, cached because each request needs them."""
    return tuple(map(parse_network, networks))
