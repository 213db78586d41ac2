"""The exports' pages: request, progress, download and verification."""

import io
import re
import uuid
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tenants.base.permissions import Role
from tenants.base.signing_keys import signing_keys
from tenants.compliance.exports.jobs.queries import BuildView, list_builds
from tenants.compliance.exports.verification import verify_export
from tests.fakes.exports import ask_for, build_all, end_all, file_of, made
from tests.fixtures.companies import ACME, GLOBEX, Company, make_company
from tests.integration.console.conftest import SignIn
from tests.integration.console.pages.queries import few_queries

ASKED = {"definition": "members", "format": "csv", "first": "2026-10-01", "last": "2026-10-31"}
EXPORTERS = set(Role) - {Role.DEVELOPER}


@pytest.fixture
def company() -> Any:
    company = make_company("initech", ACME)
    yield company
    end_all(company)


@pytest.fixture
def audrey(company: Company, sign_in: SignIn) -> Client:
    return sign_in(company.people[Role.AUDITOR])


def builds(company: Company) -> list[BuildView]:
    auditor = company.people[Role.AUDITOR].actor
    return list_builds(actor=auditor, limit=50, cursor=None).rows


def wrong(page: str) -> list[str]:
    return re.findall(r'class="wrong" id="id_(\w+)_error"', page)


@pytest.mark.parametrize("role", list(Role))
@pytest.mark.parametrize("path", ["/exports", "/exports/new"])
def test_who_may_export_sees_the_pages(
    company: Company, sign_in: SignIn, role: Role, path: str
) -> None:
    answer = sign_in(company.people[role]).get(path)

    assert answer.status_code == (200 if role in EXPORTERS else 403)


def test_a_role_is_offered_what_it_may_read(company: Company, sign_in: SignIn) -> None:
    page = sign_in(company.people[Role.BILLING]).get("/exports/new").content.decode()

    assert 'value="invoices"' in page
    assert 'value="audit"' not in page


def test_an_export_is_asked_for_watched_fetched_and_verified(
    company: Company, audrey: Client
) -> None:
    audrey.post("/exports/new", ASKED)
    (asked,) = builds(company)
    assert asked.since.isoformat() == "2026-10-01T00:00:00+00:00"
    assert asked.until.isoformat() == "2026-11-01T00:00:00+00:00"
    waiting = audrey.get("/exports").content.decode()
    assert "Waiting" in waiting
    assert 'hx-trigger="every 2s"' in waiting

    build_all(company)

    page = audrey.get("/exports").content.decode()
    assert "Ready" in page
    assert "every 2s" not in page
    link = audrey.post(f"/exports/{asked.id}/fetch")["Location"]
    answer = Client().get(link)
    data = b"".join(answer.streaming_content)  # type: ignore[attr-defined]  # it streams
    proof = audrey.get(f"/exports/{asked.id}/proof").content
    verify_export(io.BytesIO(data), proof, signing_keys().public_keys())


def test_days_are_utcs_wherever_one_is(company: Company, audrey: Client) -> None:
    audrey.cookies["caret-zone"] = "Asia/Kolkata"

    audrey.post("/exports/new", ASKED)

    (asked,) = builds(company)
    assert asked.since.isoformat() == "2026-10-01T00:00:00+00:00"
    assert "1 Oct 2026" in audrey.get("/exports").content.decode()


def test_a_pack_needs_no_format(company: Company, audrey: Client) -> None:
    audrey.post("/exports/new", {**ASKED, "definition": "evidence_pack", "format": ""})

    (asked,) = builds(company)
    assert (asked.definition, asked.media) == ("evidence_pack", "zip")


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
def test_what_is_wrong_is_said_beside_its_field_and_nothing_is_asked_for(
    company: Company, audrey: Client, changes: dict[str, str], field: str
) -> None:
    answer = audrey.post("/exports/new", ASKED | changes)

    assert answer.status_code == 400
    assert wrong(answer.content.decode()) == [field]
    assert builds(company) == []


def test_an_unknown_format_is_said(company: Company, audrey: Client) -> None:
    answer = audrey.post("/exports/new", ASKED | {"format": "pdf"})

    assert answer.status_code == 400
    assert builds(company) == []


def test_one_too_many_is_said(company: Company, audrey: Client) -> None:
    for _ in range(10):
        audrey.post("/exports/new", ASKED)

    answer = audrey.post("/exports/new", ASKED)

    assert answer.status_code == 400
    assert "You already have 10 exports in progress" in answer.content.decode()


def test_an_export_is_cancelled(company: Company, audrey: Client) -> None:
    audrey.post("/exports/new", ASKED)
    (asked,) = builds(company)

    page = audrey.post(f"/exports/{asked.id}/cancel", follow=True).content.decode()

    assert "Export cancelled." in page
    assert builds(company)[0].state == "cancelled"
    again = audrey.post(f"/exports/{asked.id}/cancel", follow=True).content.decode()
    assert "The export is already cancelled." in again


@pytest.mark.parametrize("what", ["fetch", "proof"])
def test_there_is_no_file_before_it_is_finished(
    company: Company, audrey: Client, what: str
) -> None:
    audrey.post("/exports/new", ASKED)
    (asked,) = builds(company)

    ask = audrey.get if what == "proof" else audrey.post
    answer = ask(f"/exports/{asked.id}/{what}")

    assert answer["Location"] == f"/exports/{asked.id}"


@pytest.mark.parametrize("what", ["", "/proof", "/fetch", "/cancel"])
def test_a_neighbours_export_is_not_there(
    company: Company, audrey: Client, sign_in: SignIn, what: str
) -> None:
    audrey.post("/exports/new", ASKED)
    (asked,) = builds(company)
    bob = sign_in(make_company("hooli", GLOBEX).administrator)

    for export_id in (asked.id, uuid.uuid4()):
        ask = bob.get if what in ("", "/proof") else bob.post
        assert ask(f"/exports/{export_id}{what}").status_code == 404
    assert builds(company)[0].state == "queued"


def test_what_a_role_may_not_read_is_not_there(
    company: Company, audrey: Client, sign_in: SignIn
) -> None:
    audrey.post("/exports/new", ASKED | {"definition": "audit"})
    (asked,) = builds(company)

    bill = sign_in(company.people[Role.BILLING])

    assert bill.get(f"/exports/{asked.id}").status_code == 404
    assert str(asked.id) not in bill.get("/exports").content.decode()


def test_the_list_takes_few_queries(company: Company, audrey: Client) -> None:
    for _ in range(5):
        audrey.post("/exports/new", ASKED)

    with few_queries():
        audrey.get("/exports")


def test_a_cursor_that_is_none_is_said(audrey: Client) -> None:
    assert audrey.get("/exports", {"cursor": "zzz"}).status_code == 400


def signed(company: Company, definition: str) -> tuple[SimpleUploadedFile, SimpleUploadedFile]:
    """Return an export's file and its proof, as a browser sends them."""
    auditor = company.people[Role.AUDITOR].actor
    pack = definition == "evidence_pack"
    build_id = ask_for(company, definition, "zip" if pack else "csv", actor=auditor)
    build_all(company)
    build = made(company, build_id)
    proof = SimpleUploadedFile("proof.json", (build.proof or "").encode())
    return SimpleUploadedFile(build.name, file_of(company, build_id)), proof


def verified(client: Client, **files: SimpleUploadedFile) -> str:
    return client.post("/exports/verify", files).content.decode()


def test_an_export_and_its_proof_are_verified(company: Company, audrey: Client) -> None:
    file, proof = signed(company, "members")

    page = verified(audrey, file=file, proof=proof)

    assert "Export: the signature is valid." in page
    assert str(company.tenant_id) in page


def test_what_was_changed_is_said(company: Company, audrey: Client) -> None:
    _, proof = signed(company, "members")

    page = verified(audrey, file=SimpleUploadedFile("members.csv", b"nobody"), proof=proof)

    assert "verification failed" in page
    assert "the data: it has 6 bytes" in page


@pytest.mark.parametrize("has_proof", [True, False])
def test_a_pack_is_verified_with_all_that_is_in_it(
    company: Company, audrey: Client, has_proof: bool
) -> None:
    file, proof = signed(company, "evidence_pack")

    page = verified(audrey, file=file, **({"proof": proof} if has_proof else {}))

    assert "the signature is valid." in page


def test_a_file_without_its_proof_is_asked_for_it(audrey: Client) -> None:
    page = verified(audrey, file=SimpleUploadedFile("members.csv", b"id"))

    assert wrong(page) == ["proof"]


def test_who_may_not_export_verifies_nothing(company: Company, sign_in: SignIn) -> None:
    assert sign_in(company.developer).get("/exports/verify").status_code == 403
