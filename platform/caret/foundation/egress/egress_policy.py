"""Connections to addresses that tenants name: never into the networks that this process stands in.

The check is made when a socket is opened, with the very address that it is then connected to: a
name that is resolved to something else a moment later (DNS rebinding) gains nothing.

    what is connected to               encrypted   plain
    a public address                   yes         no
    one of the operator's networks     yes         yes
    anything else (caret.foundation.special_addresses)   no   no
"""

import ipaddress
import socket
from collections.abc import Sequence
from typing import Any, TypeAlias

from caret.foundation.special_addresses import Address, Network, is_public

# As getaddrinfo gives it: family, type, protocol, canonical name, address.
AddressInfo: TypeAlias = tuple[Any, Any, int, str, Any]


class AddressNotAllowed(OSError):
    """Neither public nor one of the operator's networks, or plain where it must be encrypted."""


class Egress:
    """For one connection attempt or several to one place."""

    def __init__(self, networks: Sequence[Network], *, is_encrypted: bool) -> None:
        self._networks = networks
        self._is_encrypted = is_encrypted
        self.has_refused = False  # HTTP clients wrap what open_socket raises beyond recognition

    def open_socket(self, info: AddressInfo) -> socket.socket:
        """Raises AddressNotAllowed."""
        if not is_allowed(info[4][0], self._networks, is_encrypted=self._is_encrypted):
            self.has_refused = True
            raise AddressNotAllowed("this address may not be connected to")
        opened = socket.socket(info[0], info[1], info[2])
        opened.setblocking(False)
        return opened


def is_allowed(text: str, networks: Sequence[Network], *, is_encrypted: bool) -> bool:
    """`text` is an address, not a name."""
    address = _plain(text)
    if any(address in network for network in networks):
        return True
    return is_encrypted and is_public(address)


def _plain(text: str) -> Address:
    """An IPv4-mapped address is connected to over IPv4, so it is judged as the one inside."""
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address
