"""The CSV file of consent receipts, and the reasons why captured content was erased."""

from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.layout.lists.list_page import CsvFile
from tenants.privacy.consent.queries import ConsentReceiptView

# By the values of tenants.privacy.content_capture.erasure.ContentErasureReason.
CONTENT_ERASURE_REASONS: Final[dict[str, Promise]] = {
    "withdrawn": _("Consent withdrawn"),
    "no_consent": _("No consent"),
    "retention": _("Retention period ended"),
    "erased": _("User or tenant erased"),
    "unfinished": _("Never stored"),
}
RECEIPTS_FILE: Final[CsvFile[ConsentReceiptView]] = CsvFile(
    "receipts",
    {
        "user": lambda receipt: receipt.user_email or receipt.user_id,
        "kind": lambda receipt: receipt.kind,
        "decision": lambda receipt: receipt.is_granted,
        "consent_text": lambda receipt: receipt.wording,
        "consent_text_sha256": lambda receipt: receipt.wording_sha256,
        "changed_by": lambda receipt: receipt.actor_email,
        "created_at": lambda receipt: receipt.created_at,
    },
)
