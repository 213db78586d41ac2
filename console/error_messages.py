"""What operations refuse, in the reader's language. Programs are told in English."""

from django.utils.translation import gettext

from caret.foundation.crypto.signing import BadSignature
from tenants.base.errors import DomainError


def translate_error(error: DomainError | BadSignature) -> str:
    """For a page. A wording that is in no catalogue is told as it is."""
    wording = gettext(error.wording)
    return wording.format(**error.values) if error.values else wording
