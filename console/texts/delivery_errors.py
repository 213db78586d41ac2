"""Translation of the errors of deliveries to audit sinks and by e-mail.

The database stores them in English, with their values:

    The receiver responded with status 503. -> Der Empfänger hat mit dem Status 503 geantwortet.
"""

import re
from typing import Final

from django.utils.translation import gettext, gettext_noop

from tenants.compliance.audit_sinks.delivery import BAD_STATUS

_PLACEHOLDER: Final = re.compile(r"%\\\((\w+)\\\)s")  # such as %(error)s, after re.escape
_WORDINGS_WITH_VALUES: Final = (
    BAD_STATUS,
    gettext_noop("The endpoint did not respond (%(error)s)."),
    gettext_noop("The mail server did not accept the message (%(error)s)."),
)
# Errors of caret.foundation.egress.http_client, which has no translation catalogue. They are listed
# here so that the console's catalogue contains them. A test compares the list with that module.
HTTP_CLIENT_ERRORS: Final = (
    gettext_noop("The request timed out."),
    gettext_noop("The response was too large."),
    gettext_noop("The address is not valid."),
    gettext_noop("The address is not public, or the connection is not encrypted."),
    gettext_noop("The DNS lookup timed out."),
    gettext_noop("The host name does not resolve."),
)


def translate_delivery_error(error: str) -> str:
    """Return the translated error; an unknown error unchanged. "" means that there is no error."""
    for wording, pattern in _PATTERNS:
        if match := pattern.fullmatch(error):
            return gettext(wording) % match.groupdict()
    return gettext(error) if error else ""


def _compile_wording(wording: str) -> re.Pattern[str]:
    """Return the pattern that matches an error with this wording, and captures its values."""
    return re.compile(_PLACEHOLDER.sub(r"(?P<\1>.*)", re.escape(wording)))


_PATTERNS: Final = tuple((wording, _compile_wording(wording)) for wording in _WORDINGS_WITH_VALUES)
