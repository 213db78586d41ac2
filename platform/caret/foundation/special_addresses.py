"""Networks without public hosts: IANA's special addresses, and the metadata services of clouds.

https://www.iana.org/assignments/iana-ipv4-special-registry
https://www.iana.org/assignments/iana-ipv6-special-registry

All entries are included, even those that IANA calls globally reachable (anycast of protocols and of
AS112, multicast relays): no webhook and no identity provider has an address there. Addresses that
contain an IPv4 address (mapped, translated by NAT64, 6to4, Teredo) are included as well, so that
none of them leads to a forbidden IPv4 address.
"""

import ipaddress
from typing import Final, TypeAlias

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

# Networks. The text beside each only tells readers of this module why it is listed.
_IPV4: Final = {
    "0.0.0.0/8": "this network",
    "10.0.0.0/8": "private use",
    "100.64.0.0/10": "shared by carriers; Alibaba Cloud's metadata service",
    "127.0.0.0/8": "loopback",
    "169.254.0.0/16": "link-local; the metadata services of most clouds",
    "172.16.0.0/12": "private use",
    # Includes DS-Lite, the dummy address 192.0.0.8, PCP and TURN anycast, NAT64 discovery, and
    # Oracle Cloud's metadata service at 192.0.0.192.
    "192.0.0.0/24": "IETF protocol assignments",
    "192.0.2.0/24": "documentation",
    "192.31.196.0/24": "AS112",
    "192.52.193.0/24": "automatic multicast tunnelling (AMT)",
    "192.88.99.0/24": "relays of 6to4 and 6a44",
    "192.168.0.0/16": "private use",
    "192.175.48.0/24": "AS112, direct delegation",
    "198.18.0.0/15": "benchmarks",
    "198.51.100.0/24": "documentation",
    "203.0.113.0/24": "documentation",
    "224.0.0.0/4": "multicast, which has a registry of its own",
    "240.0.0.0/4": "reserved, and 255.255.255.255",
}
_IPV6: Final = {
    "::/128": "unspecified",
    "::1/128": "loopback",
    "::/96": "IPv4-compatible, deprecated by RFC 4291",
    "::ffff:0:0/96": "IPv4-mapped",
    "::ffff:0:0:0/96": "IPv4-translated, RFC 2765",
    "64:ff9b::/96": "NAT64",
    "64:ff9b:1::/48": "NAT64 of one network",
    "100::/64": "discard only",
    "100:0:0:1::/64": "dummy prefix",
    # Includes Teredo, PCP, TURN and DNS-SD anycast, benchmarks, AMT, AS112, ORCHID, drones.
    "2001::/23": "IETF protocol assignments",
    "2001:db8::/32": "documentation",
    "2002::/16": "6to4",
    "2620:4f:8000::/48": "AS112, direct delegation",
    "3fff::/20": "documentation",
    "5f00::/16": "segment routing",
    "fc00::/7": "unique local; metadata services of AWS and Google Cloud",
    "fe80::/10": "link-local",
    "fec0::/10": "site-local, deprecated by RFC 3879",
    "ff00::/8": "multicast, which has a registry of its own",
}
# Public addresses at which a cloud serves a virtual machine from its host or network.
_CLOUDS: Final = {
    "168.63.129.16/32": "Azure: DNS, health probes, and the agent's secrets",
}
# IPv6 addresses outside this network are special or unassigned.
_GLOBAL_UNICAST_IPV6: Final = ipaddress.IPv6Network("2000::/3")

SPECIAL_NETWORKS: Final[tuple[Network, ...]] = tuple(
    ipaddress.ip_network(text) for text in (*_IPV4, *_IPV6, *_CLOUDS)
)


def is_public(address: Address) -> bool:
    """Return whether a public host may have this address."""
    if isinstance(address, ipaddress.IPv6Address) and address not in _GLOBAL_UNICAST_IPV6:
        return False
    return not any(address in network for network in SPECIAL_NETWORKS)
