"""What operations refuse, in the reader's language. Programs are told in English."""

from django.utils.translation import gettext

from caret.foundation.crypto.signing import BadSignature
from tenants.base.errors import Refused


def told(error: Refused | BadSignature) -> str:
    """For a page. A wording that is in no catalogue is told as it is."""
    wording = gettext(error.wording)
    return wording.format(**error.values) if error.values else wording
