"""Outbound connections to hosts that tenants choose: never into internal networks.

The check runs when the socket is opened, on the address that the socket then connects to. So a name
that resolves to another address a moment later (DNS rebinding) cannot bypass the check.

    destination                                    encrypted   plain text
    a public address                               yes         no
    one of the operator's networks                 yes         yes
    any other address (see special_addresses.py)   no          no
"""

import ipaddress
import socket
from collections.abc import Sequence
from typing import Any, TypeAlias

from caret.foundation.special_addresses import Address, Network, is_public

# As getaddrinfo returns it: family, type, protocol, canonical name, and address. The address is a
# tuple that begins with the IP address and the port.
AddressInfo: TypeAlias = tuple[Any, Any, int, str, Any]


class AddressNotAllowed(OSError):
    """The address is neither public nor the operator's, or the connection must be encrypted."""


class Egress:
    """Creates sockets for the addresses of one host, if connections to them are allowed."""

    def __init__(self, networks: Sequence[Network], *, is_encrypted: bool) -> None:
        self._networks = networks
        self._is_encrypted = is_encrypted
        # True once an address was refused. HTTP clients hide the type of open_socket's error.
        self.has_refused = False

    def open_socket(self, info: AddressInfo) -> socket.socket:
        """Create a non-blocking socket for the address; the caller connects it.

        Raises AddressNotAllowed, OSError.
        """
        family, socket_type, protocol, _, address = info
        if not is_allowed(address[0], self._networks, is_encrypted=self._is_encrypted):
            self.has_refused = True
            raise AddressNotAllowed("connections to this address are not allowed")
        new_socket = socket.socket(family, socket_type, protocol)
        new_socket.setblocking(False)
        return new_socket


def is_allowed(text: str, networks: Sequence[Network], *, is_encrypted: bool) -> bool:
    """Return whether an IP address (not a host name) may be connected to."""
    address = _unmap_address(text)
    if any(address in network for network in networks):
        return True
    return is_encrypted and is_public(address)


def _unmap_address(text: str) -> Address:
    """Parse an IP address. For an IPv4-mapped address, return the IPv4 address inside it.

    A connection to an IPv4-mapped address uses IPv4.
    """
    address = ipaddress.ip_address(text.partition("%")[0])
    ipv4 = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return ipv4 or address
