"""The page that verifies an export. `manage.py verify_export` has the same result offline."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_http_methods

from caret.foundation.crypto.signing import PublicKeys
from console.layout.htmx import render_page
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.views.verification_result import VerificationResult, signed_fields
from tenants.base.permissions import Permission
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.compliance.exports.definitions.definitions import PACK, PACK_MEDIA
from tenants.compliance.exports.evidence_pack_verification import verify_pack
from tenants.compliance.exports.verification import BrokenExport, Document, verify_export

if TYPE_CHECKING:
    from django.core.files.uploadedfile import UploadedFile

# Both files must fit into one request, together with 16 KiB for the rest of the form.
_MAX_TOTAL_BYTES: Final = settings.DATA_UPLOAD_MAX_MEMORY_SIZE - 16_384


class UploadForm(forms.Form):
    file = forms.FileField(
        label=_("Export"),
        help_text=_(
            "The downloaded file, unchanged. It can also be an evidence pack. With its proof, it "
            "may have up to 1 MB. Verify larger files offline."
        ),
    )
    proof = forms.FileField(
        label=_("Proof"),
        required=False,
        help_text=_("The .proof.json file of the same export. Not needed for an evidence pack."),
    )

    def clean_proof(self) -> UploadedFile[bytes] | None:
        proof: UploadedFile[bytes] | None = self.cleaned_data["proof"]
        file = self.cleaned_data.get("file")  # Django cleans the fields in their order
        # Only an evidence pack contains its own proof.
        if proof is None and file is not None and not _is_pack(file):
            raise forms.ValidationError(gettext("Also choose the proof file."))
        return proof

    def clean(self) -> None:
        files = (self.cleaned_data.get("file"), self.cleaned_data.get("proof"))
        if sum(file.size or 0 for file in files if file is not None) > _MAX_TOTAL_BYTES:
            self.add_error("file", gettext("This file is too large. Verify it offline."))


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.EXPORT)
def verify(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Verify the uploaded files, which are not stored."""
    is_submitted = request.method == "POST"
    form = UploadForm(request.POST, request.FILES) if is_submitted else UploadForm()
    verdict = _verify_upload(form) if is_submitted and form.is_valid() else None
    context = {"form": form, "verdict": verdict}
    status = 400 if form.errors else 200
    return render_page(request, member, "console/exports/verify.html", context, status=status)


def _verify_upload(form: UploadForm) -> VerificationResult:
    """Verify the files with the public signing keys. No private key is needed."""
    file = form.cleaned_data["file"]
    proof = form.cleaned_data["proof"]
    kind = gettext("Evidence pack") if _is_pack(file) else gettext("Export")
    try:
        document = _verify_file(
            file, proof.read() if proof else None, load_signing_keys().public_keys()
        )
    except BrokenExport as error:
        return VerificationResult(kind, [], str(error))
    return VerificationResult(kind, signed_fields(document))


def _is_pack(file: UploadedFile[bytes]) -> bool:
    """Return whether the file's name is that of an evidence pack, which is a ZIP file."""
    return str(file.name).endswith(f".{PACK_MEDIA}")


def _verify_file(file: IO[bytes], proof: bytes | None, keys: PublicKeys) -> Document:
    """Verify the file and return the signed document. Raises BrokenExport.

    `proof` is None for an evidence pack that was uploaded alone: it contains its own proof. If a
    pack was uploaded with a proof, both proofs are verified.
    """
    if proof is None:
        return verify_pack(file, keys)
    document = verify_export(file, proof, keys)
    if document["definition"] == PACK:
        verify_pack(file, keys)
    return document
