"""Translation of delivery errors, which the database stores in English.

It answered with the status 503. -> Das Ziel hat mit dem Status 503 geantwortet.
"""

import re
from typing import Final

from django.utils.translation import gettext, gettext_noop

from tenants.compliance.audit_sinks.delivery import ANSWERED

_VALUE: Final = re.compile(r"%\\\((\w+)\\\)s")  # a placeholder, after re.escape
_WITH_VALUES: Final = (
    ANSWERED,
    gettext_noop("The endpoint did not respond (%(error)s)."),
    gettext_noop("The mail server did not accept the message (%(error)s)."),
)
# Errors of caret.foundation.egress.http_client, which has no translation catalogue.
HTTP_CLIENT_ERRORS: Final = (
    gettext_noop("The request timed out."),
    gettext_noop("The response was too large."),
    gettext_noop("The address is not valid."),
    gettext_noop("The address is not public, or the connection is not encrypted."),
    gettext_noop("The DNS lookup timed out."),
    gettext_noop("The host name does not resolve."),
)


def translate_delivery_error(error: str) -> str:
    """Return the translated error, or "" for no error. Unknown errors stay as they are."""
    for wording, pattern in _PATTERNS:
        if match := pattern.fullmatch(error):
            return gettext(wording) % match.groupdict()
    return gettext(error) if error else ""


def _compile_wording(wording: str) -> re.Pattern[str]:
    return re.compile(_VALUE.sub(r"(?P<\1>.*)", re.escape(wording)))


_PATTERNS: Final = tuple((wording, _compile_wording(wording)) for wording in _WITH_VALUES)
