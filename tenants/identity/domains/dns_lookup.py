"""DNS lookups for domain verification."""

from typing import Final

import dns.exception
import dns.resolver
import structlog

logger = structlog.get_logger(__name__)

_LIFETIME_S: Final = 5.0


def look_up_txt_records(name: str) -> list[str]:
    """Return the TXT records; empty if there are none or the DNS does not answer."""
    try:
        response = dns.resolver.resolve(name, "TXT", lifetime=_LIFETIME_S)
    except (dns.exception.DNSException, OSError) as error:
        logger.info("domain.not_resolved", domain=name, reason=type(error).__name__)
        return []
    return [b"".join(record.strings).decode("ascii", "replace") for record in response]
