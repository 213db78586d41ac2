"""Resolves a service name by DNS: a headless Kubernetes service, Consul, or any zone."""

import asyncio

import dns.asyncresolver
import dns.exception
import dns.resolver

from inference.pools.discovery.pool_members import MAX_RESOLVE_S, ResolutionFailed


class DnsResolver:
    def __init__(self, server: tuple[str, int] | None = None) -> None:
        """`server`: IP address and port of a DNS server; None: those of /etc/resolv.conf."""
        self._server = server
        self._resolver: dns.asyncresolver.Resolver | None = None

    async def resolve(self, name: str) -> frozenset[str]:
        """Return the IP addresses, at least one. Raises ResolutionFailed."""
        try:
            # Made here, because a missing or invalid /etc/resolv.conf raises a DNSException.
            resolver = self._resolver = self._resolver or _make_resolver(self._server)
            ipv4_answer, ipv6_answer = await asyncio.gather(
                *(
                    resolver.resolve(name, kind, raise_on_no_answer=False, search=True)
                    for kind in ("A", "AAAA")
                )
            )
        except (dns.exception.DNSException, OSError) as error:
            raise ResolutionFailed(type(error).__name__) from error
        addresses = frozenset(
            record.to_text()
            for answer in (ipv4_answer, ipv6_answer)
            for record in answer.rrset or ()
        )
        if not addresses:
            raise ResolutionFailed("no addresses")
        return addresses


def _make_resolver(server: tuple[str, int] | None) -> dns.asyncresolver.Resolver:
    resolver = dns.asyncresolver.Resolver(configure=server is None)
    if server is not None:
        address, resolver.port = server
        resolver.nameservers = [address]
    resolver.lifetime = MAX_RESOLVE_S
    return resolver
