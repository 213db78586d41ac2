"""The lists of purges and deletion certificates, and the verification of signed documents."""

import io
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_GET, require_http_methods

from caret.foundation.crypto.signing import BadSignature
from console.downloads.file_response import file_response
from console.layout.htmx import render_page
from console.layout.lists.list_page import CsvFile, ListPage, ListQuery
from console.layout.permission_required import permission_required
from console.sign_in.current_member import CurrentMember, member_required
from console.texts.error_messages import translate_error
from console.views.retention.certificate_text import name_data, write_sentences
from console.views.retention.list import tabs
from console.views.verification_result import VerificationResult, signed_fields
from tenants.base.pagination import Page, map_page
from tenants.base.permissions import Permission
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.compliance.data_subjects.verification import verify_bundle
from tenants.policy.data_classes import DATA_CLASSES
from tenants.privacy.retention.queries import (
    CertificateView,
    RunView,
    find_certificate,
    list_certificates,
    list_runs,
)
from tenants.privacy.retention.verification import verify_certificate

# The size limit of a request, minus 16 KiB for the other parts of the form.
_MAX_FILE_BYTES: Final = settings.DATA_UPLOAD_MAX_MEMORY_SIZE - 16_384
_ZIP_START: Final = b"PK\x03\x04"  # the first bytes of a ZIP file


class FileForm(forms.Form):
    document = forms.FileField(
        label=_("Certificate or data export"),
        help_text=_(
            "A deletion certificate (.json) or a personal data export (.zip) of up to 1 "
            "MB. Verify larger files offline."
        ),
    )


@dataclass(frozen=True, slots=True)
class CertificateRow:
    """A certificate as a row of the list."""

    id: UUID
    number: int
    created_at: datetime
    title: str  # of the deleted data
    method: str  # of the deletion


class _RunRow(NamedTuple):
    title: str  # of the data class
    run: RunView  # one purge of the data class


def _find_runs(query: ListQuery) -> Page[_RunRow]:
    page = list_runs(actor=query.actor, limit=query.limit, cursor=query.cursor)
    return map_page(page, lambda run: _RunRow(gettext(DATA_CLASSES[run.data_class].title), run))


_RUNS: Final = ListPage(
    template="console/retention/purge_runs.html",
    query=_find_runs,
    context=lambda query, _page: {"tabs": tabs(query.request)},
    csv=CsvFile(
        "purges",
        {
            "class": lambda row: row.run.data_class,
            "began_at": lambda row: row.run.began_at,
            "finished_at": lambda row: row.run.finished_at,
            "days": lambda row: row.run.days,
            "before": lambda row: row.run.opening,
            "created": lambda row: row.run.created,
            "deleted": lambda row: row.run.deleted,
            "after": lambda row: row.run.closing,
            "on_hold": lambda row: row.run.held,
        },
    ),
)


@require_GET
@member_required
def list_purges(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _RUNS.render(request, member)


def _find_certificates(query: ListQuery) -> Page[CertificateRow]:
    page = list_certificates(actor=query.actor, limit=query.limit, cursor=query.cursor)
    return map_page(page, _to_row)


_CERTIFICATES: Final = ListPage(
    template="console/retention/certificates.html",
    query=_find_certificates,
    context=lambda query, _page: {"tabs": tabs(query.request)},
    csv=CsvFile(
        "certificates",
        {
            "number": lambda row: row.number,
            "what": lambda row: row.title,
            "method": lambda row: row.method,
            "created_at": lambda row: row.created_at,
            "id": lambda row: str(row.id),
        },
    ),
)


@require_GET
@member_required
def certificates(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    return _CERTIFICATES.render(request, member)


@require_GET
@member_required
def show_certificate(
    request: HttpRequest, member: CurrentMember, certificate_id: UUID
) -> HttpResponse:
    certificate_view = find_certificate(actor=member.actor, certificate_id=certificate_id)
    context = {
        "row": _to_row(certificate_view),
        "sentences": write_sentences(json.loads(certificate_view.document)),
        "verdict": _verify_certificate(certificate_view.document.encode()),
    }
    return render_page(request, member, "console/retention/certificate.html", context)


@require_GET
@member_required
def download_certificate(
    request: HttpRequest, member: CurrentMember, certificate_id: UUID
) -> HttpResponse:
    certificate_view = find_certificate(actor=member.actor, certificate_id=certificate_id)
    name = f"caret-deletion-certificate-{certificate_view.number}.json"
    return file_response(certificate_view.document, name=name, content_type="application/json")


@require_http_methods(["GET", "POST"])
@member_required
@permission_required(Permission.READ_RETENTION)
def verify_file(request: HttpRequest, member: CurrentMember) -> HttpResponse:
    """Verify a file with only the public keys, like the offline command. The file is not stored."""
    form = FileForm(request.POST, request.FILES) if request.method == "POST" else FileForm()
    verdict = _verify_upload(form) if form.is_valid() else None
    context = {"tabs": tabs(request), "form": form, "verdict": verdict}
    status = 400 if form.errors else 200
    return render_page(request, member, "console/retention/verify.html", context, status=status)


def _verify_upload(form: FileForm) -> VerificationResult | None:
    """Return the result; None, with an error in the form, if the file is too large."""
    file: UploadedFile[bytes] = form.cleaned_data["document"]
    if (file.size or 0) > _MAX_FILE_BYTES:
        form.add_error("document", gettext("This file is too large. Verify it offline."))
        return None
    content = file.read()
    return (
        _verify_bundle(content) if content.startswith(_ZIP_START) else _verify_certificate(content)
    )


def _verify_certificate(content: bytes) -> VerificationResult:
    kind = gettext("Deletion certificate")
    try:
        document = verify_certificate(content, load_signing_keys().public_keys())
    except BadSignature as error:
        return VerificationResult(kind, [], translate_error(error))
    return VerificationResult(kind, signed_fields(document))


def _verify_bundle(content: bytes) -> VerificationResult:
    kind = gettext("Personal data export")
    try:
        manifest = verify_bundle(io.BytesIO(content), load_signing_keys().public_keys())
    except BadSignature as error:
        return VerificationResult(kind, [], translate_error(error))
    return VerificationResult(kind, signed_fields(manifest))


def _to_row(certificate_view: CertificateView) -> CertificateRow:
    document = json.loads(certificate_view.document)
    return CertificateRow(
        certificate_view.id,
        certificate_view.number,
        certificate_view.created_at,
        name_data(document),
        gettext(document.get("method", "")),
    )
