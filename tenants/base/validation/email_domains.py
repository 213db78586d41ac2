"""Names of e-mail domains as people write them, and the DNS record that proves ownership."""

import re
import uuid
from typing import Final

from tenants.base.errors import InvalidValue

# The end of the addresses that replace those of erased users.
ANONYMOUS_DOMAIN: Final = "@erased.invalid"
TXT_PREFIX: Final = "caret-domain-verification="
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_MAX_CHARS: Final = 253
# Public providers: anybody can get an address there.
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
    """Return a domain's name in lower case and IDNA. Raises InvalidValue."""
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
    """Return a unique address that nobody can have (RFC 2606)."""
    return f"{uuid.uuid4()}{ANONYMOUS_DOMAIN}"
