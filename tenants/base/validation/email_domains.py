"""E-mail domains: parses their names, and makes addresses for erased users."""

import re
import uuid
from typing import Final

from tenants.base.errors import InvalidValue

# The end of the e-mail addresses that replace those of erased users.
ANONYMOUS_DOMAIN: Final = "@erased.invalid"
# The start of the DNS TXT record with which a tenant proves that a domain belongs to it.
TXT_PREFIX: Final = "caret-domain-verification="
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_MAX_CHARS: Final = 253  # of a name in DNS (RFC 1035)
# Domains of providers where anybody can get an address.
_PUBLIC: Final = frozenset(
    {
        "aol.com",
        "fastmail.com",
        "gmail.com",
        "gmx.com",
        "gmx.de",
        "googlemail.com",
        "hotmail.com",
        "icloud.com",
        "live.com",
        "mail.com",
        "mail.ru",
        "me.com",
        "msn.com",
        "outlook.com",
        "proton.me",
        "protonmail.com",
        "qq.com",
        "web.de",
        "yahoo.com",
        "yandex.ru",
    }
)


def parse_domain(text: str) -> str:
    """Return a domain's name in lower case and as ASCII (IDNA), without dots at its ends.

    Raises InvalidValue, also for domains of public providers.
    """
    try:
        name = text.strip().strip(".").encode("idna").decode("ascii").lower()
    except UnicodeError as error:
        raise InvalidValue("name", "This is not a valid domain name.") from error
    labels = name.split(".")
    if len(labels) < 2 or len(name) > _MAX_CHARS or not all(map(_LABEL.fullmatch, labels)):
        raise InvalidValue("name", "Enter a domain name, such as example.com.")
    if name in _PUBLIC:
        raise InvalidValue("name", "This is a public e-mail domain that you cannot claim.")
    return name


def get_email_domain(email: str) -> str:
    """Return the domain of an address, or "" if it has none. The address must be in lower case."""
    return email.rpartition("@")[2] if "@" in email else ""


def make_anonymous_email() -> str:
    """Return a unique e-mail address that nobody can have (RFC 2606 reserves `.invalid`)."""
    return f"{uuid.uuid4()}{ANONYMOUS_DOMAIN}"
