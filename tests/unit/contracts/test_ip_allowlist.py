"""The networks from which an API key may be used.

The tests match addresses with networks, reject invalid values, and compare two lists of networks.
"""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.contracts.ip_allowlist import contains_all, is_allowed, parse_network


@pytest.mark.parametrize(
    ("network", "address", "expected"),
    [
        ("192.0.2.0/24", "192.0.2.255", True),
        ("192.0.2.0/24", "192.0.3.0", False),
        ("192.0.2.7", "192.0.2.7", True),
        ("::ffff:192.0.2.0/120", "192.0.2.9", True),
        ("192.0.2.0/24", "::ffff:192.0.2.9", True),
        ("2001:db8::/32", "2001:db8:1::1", True),
        ("2001:db8::/32", "2001:db9::1", False),
        ("::/0", "192.0.2.9", False),
        ("0.0.0.0/0", "::ffff:192.0.2.9", True),
        ("fe80::/64", "fe80::1%eth0", True),
    ],
)
def test_an_address_is_matched_with_a_network(network: str, address: str, expected: bool) -> None:
    assert is_allowed((network,), address) == expected


@pytest.mark.parametrize("address", [None, "", "unix", "192.0.2.256", "192.0.2.7, 10.0.0.1"])
def test_an_invalid_address_is_in_no_network(address: str | None) -> None:
    assert not is_allowed(("0.0.0.0/0", "::/0"), address)


def test_without_networks_every_address_is_allowed() -> None:
    assert all(is_allowed((), address) for address in (None, "192.0.2.9", "2001:db8::1"))


@pytest.mark.parametrize(
    "text", ["", "x", "192.0.2.7/24", "192.0.2.0/33", "fe80::1%eth0", "1" * 65, "192.0.2.0/24/8"]
)
def test_an_invalid_network_is_rejected(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # any message of ipaddress
        parse_network(text)


@pytest.mark.parametrize(
    ("wide", "narrow", "expected"),
    [
        ((), (), True),
        ((), ("192.0.2.0/24",), True),
        (("192.0.2.0/24",), (), False),
        (("192.0.2.0/24",), ("192.0.2.0/25", "192.0.2.7"), True),
        (("192.0.2.0/24",), ("192.0.2.0/25", "198.51.100.7"), False),
        (("192.0.2.0/24",), ("192.0.0.0/16",), False),
        (("0.0.0.0/0",), ("::/0",), False),
        (("192.0.2.0/24", "2001:db8::/32"), ("2001:db8:1::/48",), True),
    ],
)
def test_a_list_contains_another_if_each_network_of_the_other_is_inside_one_of_its_own(
    wide: tuple[str, ...], narrow: tuple[str, ...], expected: bool
) -> None:
    assert contains_all(wide, narrow) == expected


# A network, as text, from pairs of an address and the length of its prefix.
_NETWORKS = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 32)).map(
    lambda pair: str(ipaddress.ip_network(pair, strict=False))
)


@given(_NETWORKS, _NETWORKS, st.integers(0, 2**32 - 1))
def test_contained_networks_allow_no_further_addresses(wide: str, narrow: str, number: int) -> None:
    address = str(ipaddress.ip_address(number))

    if contains_all((wide,), (narrow,)) and is_allowed((narrow,), address):
        assert is_allowed((wide,), address)
