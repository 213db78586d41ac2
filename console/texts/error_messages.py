"""Operations' errors in the reader's language. Programs get them in English."""

from collections.abc import Mapping
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from caret.contracts.snapshot import TenantStatus
from caret.foundation.crypto.signing import BadSignature
from tenants.base.errors import DomainError

# Words inside of a sentence.
TENANT_STATUSES: Final[Mapping[str, Promise]] = {
    TenantStatus.ACTIVE: _("active"),
    TenantStatus.SUSPENDED: _("suspended"),
    TenantStatus.CLOSING: _("closing"),
    TenantStatus.CLOSED: _("closed"),
}


def translate_error(error: DomainError | BadSignature) -> str:
    """Return the translated message for a page. Unknown messages stay as they are."""
    wording = gettext(error.wording)
    if not error.values:
        return wording
    values = {
        name: TENANT_STATUSES[value] if isinstance(value, TenantStatus) else value
        for name, value in error.values.items()
    }
    return wording.format(**values)
