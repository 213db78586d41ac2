"""DNS lookups for domain verification."""

from typing import Final

import dns.exception
import dns.resolver
import structlog
from django.conf import settings

logger = structlog.get_logger(__name__)

_TIMEOUT_S: Final = 5.0  # of a lookup, retries included


def look_up_txt_records(name: str) -> list[str]:
    """Return the TXT records of a name. Return [] if there are none or the DNS does not answer."""
    try:
        response = _make_resolver().resolve(name, "TXT", lifetime=_TIMEOUT_S)
    except (dns.exception.DNSException, OSError) as error:
        logger.info("domain.not_resolved", domain=name, reason=type(error).__name__)
        return []
    return [b"".join(record.strings).decode("ascii", "replace") for record in response]


def _make_resolver() -> dns.resolver.Resolver:
    """Return the resolver of CARET_DOMAIN_RESOLVER; without this setting, the system's."""
    if settings.DOMAIN_RESOLVER is None:
        return dns.resolver.Resolver()
    resolver = dns.resolver.Resolver(configure=False)
    address, resolver.port = settings.DOMAIN_RESOLVER
    resolver.nameservers = [address]
    return resolver
