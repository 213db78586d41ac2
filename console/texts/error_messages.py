"""Error messages in the language of the page. Responses to programs have them in English."""

from typing import Final

from django.utils.translation import gettext, gettext_noop

from caret.foundation.crypto.signing import BadSignature
from console.texts.labels import label_of
from tenants.base.errors import DomainError

REDIS_UNAVAILABLE: Final = gettext_noop("Redis does not respond. Try again later.")


def translate_error(error: DomainError | BadSignature) -> str:
    """Return the message in the language of the page; in English if it has no translation."""
    wording = gettext(error.wording)  # with a field in braces for each of `values`
    if not error.values:
        return wording
    return wording.format(**{name: label_of(value) for name, value in error.values.items()})
