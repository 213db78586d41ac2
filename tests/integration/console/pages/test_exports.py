"""Exports can be requested, followed, downloaded and verified on their pages."""

import io
import re
import uuid
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.test.client import BOUNDARY, encode_multipart

from console.views.exports import verify
from tenants.base.permissions import Role
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.compliance.exports.jobs.queries import ExportView, list_exports
from tenants.compliance.exports.verification import verify_export
from tests.fakes.exports import build_exports, end_all_exports, file_of, start_export, view_export
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries

EXPORT_FORM = {
    "definition": "members",
    "format": "csv",
    "first": "2026-10-01",
    "last": "2026-10-31",
}
EXPORTERS = set(Role) - {Role.DEVELOPER}


@pytest.fixture
def company() -> Iterator[Company]:
    """Yield a company. End its exports after the test."""
    company = make_company("initech", ACME_PEOPLE)
    yield company
    end_all_exports(company)


@pytest.fixture
def audrey(company: Company, sign_in: SignIn) -> Client:
    """Return the browser of Audrey, the auditor."""
    return sign_in(company.people[Role.AUDITOR])


def list_company_exports(company: Company) -> list[ExportView]:
    auditor = company.people[Role.AUDITOR].actor
    return list_exports(actor=auditor, limit=50, cursor=None).rows


def invalid_fields(page: str) -> list[str]:
    return re.findall(r'class="wrong" id="id_(\w+)_error"', page)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("path", ["/exports", "/exports/new"])
def test_every_role_but_developer_opens_the_export_pages(
    company: Company, sign_in: SignIn, role: Role, path: str
) -> None:
    answer = sign_in(company.people[role]).get(path)

    assert answer.status_code == (200 if role in EXPORTERS else 403)


def test_the_form_offers_only_exports_that_the_role_may_read(
    company: Company, sign_in: SignIn
) -> None:
    page = sign_in(company.people[Role.BILLING]).get("/exports/new").content.decode()

    assert 'value="invoices"' in page
    assert 'value="audit"' not in page


def test_an_export_is_requested_built_downloaded_and_verified(
    company: Company, audrey: Client
) -> None:
    audrey.post("/exports/new", EXPORT_FORM)
    (export,) = list_company_exports(company)
    assert export.since.isoformat() == "2026-10-01T00:00:00+00:00"
    assert export.until.isoformat() == "2026-11-01T00:00:00+00:00"
    waiting = audrey.get("/exports").content.decode()
    assert "Waiting" in waiting
    assert 'hx-trigger="every 2s"' in waiting

    build_exports(company)

    page = audrey.get("/exports").content.decode()
    assert "Ready" in page
    assert "every 2s" not in page
    link = audrey.post(f"/exports/{export.id}/fetch")["Location"]
    answer = Client().get(link)
    data = b"".join(answer.streaming_content)  # type: ignore[attr-defined]  # it streams
    proof = audrey.get(f"/exports/{export.id}/proof").content
    verify_export(io.BytesIO(data), proof, load_signing_keys().public_keys())


def test_days_are_utc_days_in_every_time_zone(company: Company, audrey: Client) -> None:
    audrey.cookies["caret-zone"] = "Asia/Kolkata"

    audrey.post("/exports/new", EXPORT_FORM)

    (export,) = list_company_exports(company)
    assert export.since.isoformat() == "2026-10-01T00:00:00+00:00"
    assert "1 Oct 2026" in audrey.get("/exports").content.decode()


def test_an_evidence_pack_needs_no_format(company: Company, audrey: Client) -> None:
    audrey.post("/exports/new", {**EXPORT_FORM, "definition": "evidence_pack", "format": ""})

    (export,) = list_company_exports(company)
    assert (export.definition, export.media) == ("evidence_pack", "zip")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"definition": "secrets"}, "definition"),
        ({"first": "tomorrow"}, "first"),
        ({"last": "2026-09-01"}, "last"),
        ({"last": "9999-12-31"}, "last"),
        ({"first": ""}, "first"),
    ],
)
def test_an_invalid_value_gets_an_error_at_its_field_and_requests_nothing(
    company: Company, audrey: Client, changes: dict[str, str], field: str
) -> None:
    answer = audrey.post("/exports/new", EXPORT_FORM | changes)

    assert answer.status_code == 400
    assert invalid_fields(answer.content.decode()) == [field]
    assert list_company_exports(company) == []


def test_an_unknown_format_is_rejected(company: Company, audrey: Client) -> None:
    answer = audrey.post("/exports/new", EXPORT_FORM | {"format": "pdf"})

    assert answer.status_code == 400
    assert list_company_exports(company) == []


def test_an_export_beyond_the_limit_is_refused_with_a_message(
    company: Company, audrey: Client
) -> None:
    for _ in range(10):
        audrey.post("/exports/new", EXPORT_FORM)

    answer = audrey.post("/exports/new", EXPORT_FORM)

    assert answer.status_code == 400
    assert "You already have 10 exports in progress" in answer.content.decode()


def test_an_export_can_be_cancelled_once(company: Company, audrey: Client) -> None:
    audrey.post("/exports/new", EXPORT_FORM)
    (export,) = list_company_exports(company)

    page = audrey.post(f"/exports/{export.id}/cancel", follow=True).content.decode()

    assert "Export cancelled." in page
    assert list_company_exports(company)[0].state == "cancelled"
    second_page = audrey.post(f"/exports/{export.id}/cancel", follow=True).content.decode()
    assert "The export is already cancelled." in second_page


@pytest.mark.parametrize("suffix", ["fetch", "proof"])
def test_an_unfinished_export_has_neither_file_nor_proof(
    company: Company, audrey: Client, suffix: str
) -> None:
    audrey.post("/exports/new", EXPORT_FORM)
    (export,) = list_company_exports(company)

    send = audrey.get if suffix == "proof" else audrey.post
    answer = send(f"/exports/{export.id}/{suffix}")

    assert answer["Location"] == f"/exports/{export.id}"


@pytest.mark.parametrize("suffix", ["", "/proof", "/fetch", "/cancel"])
def test_another_tenants_export_is_not_found(
    company: Company, audrey: Client, sign_in: SignIn, suffix: str
) -> None:
    audrey.post("/exports/new", EXPORT_FORM)
    (export,) = list_company_exports(company)
    bob = sign_in(make_company("hooli", GLOBEX_PEOPLE).administrator)

    for export_id in (export.id, uuid.uuid4()):
        send = bob.get if suffix in ("", "/proof") else bob.post
        assert send(f"/exports/{export_id}{suffix}").status_code == 404
    assert list_company_exports(company)[0].state == "queued"


def test_a_role_does_not_see_exports_of_data_that_it_may_not_read(
    company: Company, audrey: Client, sign_in: SignIn
) -> None:
    audrey.post("/exports/new", EXPORT_FORM | {"definition": "audit"})
    (export,) = list_company_exports(company)

    bill = sign_in(company.people[Role.BILLING])

    assert bill.get(f"/exports/{export.id}").status_code == 404
    assert str(export.id) not in bill.get("/exports").content.decode()


def test_the_list_runs_few_queries(company: Company, audrey: Client) -> None:
    for _ in range(5):
        audrey.post("/exports/new", EXPORT_FORM)

    with few_queries():
        page = audrey.get("/exports").content.decode()

    assert all(str(export.id) in page for export in list_company_exports(company))


def test_an_invalid_cursor_is_rejected(audrey: Client) -> None:
    assert audrey.get("/exports", {"cursor": "zzz"}).status_code == 400


def build_export_with_proof(
    company: Company, definition: str
) -> tuple[SimpleUploadedFile, SimpleUploadedFile]:
    """Return an export's file and its proof, as a browser sends them."""
    auditor = company.people[Role.AUDITOR].actor
    is_pack = definition == "evidence_pack"
    export_id = start_export(company, definition, "zip" if is_pack else "csv", actor=auditor)
    build_exports(company)
    export = view_export(company, export_id)
    proof = SimpleUploadedFile("proof.json", (export.proof or "").encode())
    return SimpleUploadedFile(export.name, file_of(company, export_id)), proof


def verify_upload(client: Client, **files: SimpleUploadedFile) -> str:
    return client.post("/exports/verify", files).content.decode()


def test_an_export_and_its_proof_are_verified(company: Company, audrey: Client) -> None:
    file, proof = build_export_with_proof(company, "members")

    page = verify_upload(audrey, file=file, proof=proof)

    assert "Export: the signature is valid." in page
    assert str(company.tenant_id) in page


def test_a_changed_file_fails_verification_with_a_reason(company: Company, audrey: Client) -> None:
    _, proof = build_export_with_proof(company, "members")

    page = verify_upload(audrey, file=SimpleUploadedFile("members.csv", b"nobody"), proof=proof)

    assert "verification failed" in page
    assert "the data: it has 6 bytes" in page


@pytest.mark.parametrize("has_proof", [True, False])
def test_an_evidence_pack_is_verified_with_and_without_a_separate_proof(
    company: Company, audrey: Client, has_proof: bool
) -> None:
    file, proof = build_export_with_proof(company, "evidence_pack")

    page = verify_upload(audrey, file=file, **({"proof": proof} if has_proof else {}))

    assert "Evidence pack: the signature is valid." in page


def test_files_of_the_maximum_size_fit_in_a_request_and_larger_ones_are_refused(
    audrey: Client,
) -> None:
    proof = SimpleUploadedFile("members.csv.proof.json", b"{}")
    largest, larger = (  # together with the two bytes of the proof
        SimpleUploadedFile("members.csv", b" " * (verify._MAX_TOTAL_BYTES - 2 + num_more))
        for num_more in (0, 1)
    )
    fields = {"file": largest, "proof": proof, "csrfmiddlewaretoken": "c" * 64}
    body = encode_multipart(BOUNDARY, fields)
    proof.seek(0)  # encoding has read it

    page = verify_upload(audrey, file=larger, proof=proof)

    assert len(body) <= settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    assert "This file is too large. Verify it offline." in page


def test_verifying_a_file_requires_its_proof(audrey: Client) -> None:
    page = verify_upload(audrey, file=SimpleUploadedFile("members.csv", b"id"))

    assert invalid_fields(page) == ["proof"]


def test_a_developer_cannot_open_the_verification_page(company: Company, sign_in: SignIn) -> None:
    assert sign_in(company.developer).get("/exports/verify").status_code == 403
