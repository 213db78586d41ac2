"""Connections to addresses that tenants name: never into the networks that we stand in.

The check is made when a socket is opened, with the very address that it is then connected to: a
name that is resolved to something else a moment later (DNS rebinding) gains nothing.

    what is connected to               encrypted   plain
    a public address                   yes         no
    one of the operator's networks     yes         yes
    anything else: private, loopback, link-local, the cloud's metadata, multicast   no   no
"""

import ipaddress
import socket
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
# As getaddrinfo gives it: family, type, protocol, canonical name, address.
AddressInfo: TypeAlias = tuple[Any, Any, int, str, Any]

# IPv6 addresses in which an IPv4 address stands that a gateway on the way may connect to.
_NAT64: Final = (
    ipaddress.ip_network("64:ff9b::/96"),
    ipaddress.ip_network("64:ff9b:1::/48"),
)


class AddressRefused(OSError):
    """Neither public nor one of the operator's networks, or plain where it must be encrypted."""


class Egress:
    """For one connection attempt or several to one place."""

    def __init__(self, networks: Sequence[Network], *, is_encrypted: bool) -> None:
        self._networks = networks
        self._is_encrypted = is_encrypted
        self.has_refused = False  # HTTP clients wrap what open_socket raises beyond recognition

    def open_socket(self, info: AddressInfo) -> socket.socket:
        """Raises AddressRefused."""
        if not may_connect(info[4][0], self._networks, is_encrypted=self._is_encrypted):
            self.has_refused = True
            raise AddressRefused("this address may not be connected to")
        opened = socket.socket(info[0], info[1], info[2])
        opened.setblocking(False)
        return opened


def may_connect(text: str, networks: Sequence[Network], *, is_encrypted: bool) -> bool:
    """`text` is an address, not a name."""
    address = _plain(text)
    if any(address in network for network in networks):
        return True
    return is_encrypted and _is_public(address)


def _plain(text: str) -> Address:
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _is_public(address: Address) -> bool:
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if isinstance(address, ipaddress.IPv4Address):
        return True
    if address.is_site_local or address.sixtofour or address.teredo:
        return False
    return not any(address in network for network in _NAT64)
