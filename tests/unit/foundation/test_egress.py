"""The addresses to which the server may connect on behalf of tenants (egress)."""

import ipaddress
import socket
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis.strategies import ip_addresses

from caret.foundation.egress.egress_policy import AddressNotAllowed, Egress, is_allowed
from caret.foundation.special_addresses import SPECIAL_NETWORKS, Network, is_public

OPERATOR_NETWORKS = [ipaddress.ip_network("10.20.0.0/16"), ipaddress.ip_network("fd00:1::/32")]


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"])
def test_a_public_address_is_allowed_only_with_encryption(address: str) -> None:
    assert is_allowed(address, OPERATOR_NETWORKS, is_encrypted=True)
    assert not is_allowed(address, OPERATOR_NETWORKS, is_encrypted=False)


@pytest.mark.parametrize("address", ["10.20.3.4", "fd00:1::5", "::ffff:10.20.3.4"])
def test_the_operators_networks_are_allowed_with_and_without_encryption(address: str) -> None:
    assert is_allowed(address, OPERATOR_NETWORKS, is_encrypted=True)
    assert is_allowed(address, OPERATOR_NETWORKS, is_encrypted=False)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "127.8.8.8",
        "0.0.0.0",  # noqa: S104  # nothing binds to it
        "10.21.0.1",  # private, but next to OPERATOR_NETWORKS
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "192.0.2.1",
        "198.18.0.1",
        "224.0.0.1",
        "233.252.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "fe80::1",
        "fe80::1%eth0",
        "fd00:2::1",  # private, but next to OPERATOR_NETWORKS
        "fec0::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a00:1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "2001:db8::1",
        "168.63.129.16",  # Azure's host
        "192.0.0.192",  # Oracle Cloud's metadata
        "100.100.100.200",  # Alibaba Cloud's metadata
        "fd00:ec2::254",  # AWS's metadata
        "::ffff:168.63.129.16",
        "::ffff:0:168.63.129.16",
        "64:ff9b::168.63.129.16",
        "2002:a83f:8110::1",  # 6to4 of 168.63.129.16
        "2001:0:a83f:8110::1",  # Teredo with the server 168.63.129.16
        "2001:0:808:808:0:0:57c0:7eef",  # Teredo with the client 168.63.129.16
        "2002:c000:c0::",  # 6to4 of 192.0.0.192
        "4000::1",  # unassigned
    ],
)
def test_special_addresses_are_not_allowed(address: str) -> None:
    assert not is_allowed(address, OPERATOR_NETWORKS, is_encrypted=True)


@pytest.mark.parametrize("network", SPECIAL_NETWORKS, ids=str)
def test_special_networks_are_not_allowed(network: Network) -> None:
    for address in (network[0], network[-1]):
        assert not is_allowed(str(address), OPERATOR_NETWORKS, is_encrypted=True)


@given(ip_addresses())
def test_no_public_address_is_special_to_python(
    address: IPv4Address | IPv6Address,
) -> None:
    """Python has its own table of special networks, from another version of the same registries."""
    if is_public(address):
        assert address.is_global
        assert not address.is_multicast
        assert not address.is_reserved


@pytest.mark.parametrize(
    "address",
    ["168.63.129.15", "168.63.129.17", "192.0.1.0", "100.128.0.0", "2001:200::1", "2003::1"],
)
def test_addresses_next_to_special_networks_are_public(address: str) -> None:
    assert is_allowed(address, [], is_encrypted=True)


def test_no_socket_is_opened_for_a_rejected_address() -> None:
    egress = Egress([], is_encrypted=True)
    (info,) = socket.getaddrinfo("127.0.0.1", 443, type=socket.SOCK_STREAM)

    with pytest.raises(AddressNotAllowed):
        egress.open_socket(info)

    assert egress.has_refused


def test_the_socket_for_an_allowed_address_is_non_blocking() -> None:
    (info,) = socket.getaddrinfo("10.20.3.4", 514, type=socket.SOCK_STREAM)

    with Egress(OPERATOR_NETWORKS, is_encrypted=False).open_socket(info) as opened_socket:
        assert not opened_socket.getblocking()
