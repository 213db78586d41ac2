"""Exports are requested, followed and downloaded by a link over the REST API."""

import io
import json
import uuid
from typing import Any, Final

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient, Client
from django.utils import timezone
from pytest_django.plugin import DjangoDbBlocker

from caret.foundation.postgres.tenant_scope import tenant_scope
from console.api import rate_limit
from console.views.export_download import MAX_AT_ONCE, download_slots
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect_to_redis
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.compliance.exports.jobs.files import sealed_objects
from tenants.compliance.exports.verification import verify_export
from tenants.identity.api_keys.operations import revoke_key
from tenants.identity.api_keys.scopes import KeyScope
from tenants.models import AuditEntry
from tests.fakes.exports import build_exports, end_all_exports, file_of, make_export
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, make_company, make_service_key
from tests.integration.console.conftest import SignIn
from tests.stack.services import Services

API: Final = "/api/v1/exports"
EXPORT_REQUEST: Final[dict[str, Any]] = {
    "definition": "members",
    "format": "ndjson",
    "since": "2026-10-01T00:00:00Z",
    "until": "2026-11-01T00:00:00Z",
}


@pytest.fixture(scope="module")
def initech(services: Services, django_db_blocker: DjangoDbBlocker) -> Company:
    """Return the company that all tests of this file share."""
    with django_db_blocker.unblock():
        return make_company("initech", ACME_PEOPLE)


@pytest.fixture
def company(initech: Company) -> Company:
    """Return the company without the exports of earlier tests."""
    end_all_exports(initech)
    return initech


@pytest.fixture
def auditor(company: Company, sign_in: SignIn) -> Client:
    """Return the auditor's browser."""
    return sign_in(company.people[Role.AUDITOR])


def post(client: Client, path: str, body: Any = None, **headers: str) -> Any:
    """Post the body: text as it is, another value as JSON, and None as an empty body."""
    if body is None:
        text = ""
    elif isinstance(body, str):
        text = body
    else:
        text = json.dumps(body)
    return client.post(path, text, content_type="application/json", headers=headers)


def create_link(client: Client, export_id: str) -> str:
    answer = post(client, f"{API}/{export_id}/link")
    assert answer.status_code == 201
    assert answer.json()["url"].endswith(answer.json()["path"])
    return str(answer.json()["path"])


def test_an_auditor_requests_downloads_and_verifies_an_export(
    company: Company, auditor: Client
) -> None:
    requested = post(auditor, API, EXPORT_REQUEST)
    export_id = requested.json()["id"]
    assert (requested.status_code, requested.json()["state"]) == (202, "queued")
    assert post(auditor, f"{API}/{export_id}/link").status_code == 409
    assert auditor.get(f"{API}/{export_id}/proof").status_code == 409

    build_exports(company)

    export = auditor.get(f"{API}/{export_id}").json()
    assert (export["state"], export["rows_done"]) == ("finished", len(ACME_PEOPLE))  # its members
    answer = Client().get(create_link(auditor, export_id))  # without session or key
    data = b"".join(answer.streaming_content)  # type: ignore[attr-defined]  # it streams
    assert int(answer["Content-Length"]) == len(data) == export["num_bytes"]
    assert answer["Cache-Control"] == "no-store"
    assert export["name"] in answer["Content-Disposition"]
    proof = auditor.get(f"{API}/{export_id}/proof").content
    verify_export(io.BytesIO(data), proof, load_signing_keys().public_keys())
    emails = {json.loads(line)["email"] for line in data.splitlines()}
    assert company.developer.email in emails


def test_a_repeated_idempotency_key_creates_no_second_export(auditor: Client) -> None:
    headers = {"Idempotency-Key": str(uuid.uuid4())}

    first, second = (
        post(auditor, API, EXPORT_REQUEST, **headers),
        post(auditor, API, EXPORT_REQUEST, **headers),
    )

    assert first.json()["id"] == second.json()["id"]


async def test_a_file_is_streamed_in_pieces_and_releases_its_slot(
    company: Company, auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed_objects, "PIECE_BYTES", 100)
    export_id = await sync_to_async(make_export)(company)
    path = await sync_to_async(create_link)(auditor, export_id)

    answer = await AsyncClient().get(path)
    pieces = [piece async for piece in answer.streaming_content]  # type: ignore[attr-defined]

    assert b"".join(pieces) == await sync_to_async(file_of)(company, uuid.UUID(export_id))
    assert len(pieces) > 1
    acquired = [download_slots.acquire_slot(company.tenant_id) for _ in range(MAX_AT_ONCE)]
    for _ in range(acquired.count(True)):
        download_slots.release_slot(company.tenant_id)
    assert all(acquired), "the slot of the download must be free again"


def test_each_tenant_has_its_own_limit_of_concurrent_downloads(
    company: Company, cast: Cast, auditor: Client, sign_in: SignIn
) -> None:
    path = create_link(auditor, make_export(company))
    foreign_link = create_link(sign_in(cast.globex.administrator), make_export(cast.globex))
    for _ in range(MAX_AT_ONCE):
        assert download_slots.acquire_slot(company.tenant_id)
    try:
        assert Client().get(path).status_code == 429
        assert download_status(foreign_link) == 200
    finally:
        for _ in range(MAX_AT_ONCE):
            download_slots.release_slot(company.tenant_id)
    assert download_status(path) == 200


def count_audited_downloads(company: Company) -> int:
    """Return the number of downloads in the audit log."""
    with tenant_scope(company.tenant_id):
        return AuditEntry.objects.filter(
            tenant_id=company.tenant_id, action="export.downloaded"
        ).count()


def test_a_refused_download_is_not_audited(company: Company, auditor: Client) -> None:
    path = create_link(auditor, make_export(company))
    num_before = count_audited_downloads(company)
    for _ in range(MAX_AT_ONCE):
        assert download_slots.acquire_slot(company.tenant_id)
    try:
        status = download_status(path)
    finally:
        for _ in range(MAX_AT_ONCE):
            download_slots.release_slot(company.tenant_id)

    assert (status, count_audited_downloads(company)) == (429, num_before)
    assert (download_status(path), count_audited_downloads(company)) == (200, num_before + 1)


def test_downloads_are_rate_limited_per_tenant(
    company: Company, cast: Cast, auditor: Client, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create_link(auditor, make_export(company))
    foreign_link = create_link(sign_in(cast.globex.administrator), make_export(cast.globex))
    connect_to_redis().delete(
        *(f"caret:throttle:api:export-file:{tenant.tenant_id}" for tenant in (company, cast.globex))
    )
    monkeypatch.setattr(rate_limit, "MAX_PER_MINUTE", 1)

    statuses = [download_status(path), download_status(path), download_status(foreign_link)]

    assert statuses == [200, 429, 200]


def test_a_link_to_a_deleted_file_takes_no_download_slot(company: Company, auditor: Client) -> None:
    path = create_link(auditor, make_export(company))
    end_all_exports(company)

    statuses = {download_status(path) for _ in range(MAX_AT_ONCE + 1)}

    assert statuses == {404}


def download_status(path: str) -> int:
    """Download the file and return the status. Closing the response releases the slot."""
    answer = Client().get(path)
    answer.close()
    return answer.status_code


@pytest.mark.parametrize("token", ["x", "A" * 128, "A" * 10_000, "%00", "é"])
def test_an_invalid_link_is_not_found(token: str) -> None:
    answer = Client().get(f"/exports/file/{token}")

    assert answer.status_code == 404
    assert answer["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "[]",
        {},
        EXPORT_REQUEST | {"format": "exe"},
        EXPORT_REQUEST | {"definition": "passwords"},
        EXPORT_REQUEST | {"until": "2026-10-01T00:00:00Z"},
        EXPORT_REQUEST | {"since": "2026-10-01T00:00:00"},
        # In UTC, these times are outside of the years 1 to 9999, which Python supports.
        EXPORT_REQUEST | {"since": "0001-01-01T00:00:00+14:00"},
        EXPORT_REQUEST | {"until": "9999-12-31T23:59:59-12:00"},
        EXPORT_REQUEST | {"tenant_id": str(uuid.uuid4())},
        EXPORT_REQUEST | {"definition": "\0"},
    ],
    ids=[
        "not_json",
        "not_an_object",
        "empty",
        "unknown_format",
        "unknown_definition",
        "empty_period",
        "time_without_zone",
        "time_before_year_1",
        "time_after_year_9999",
        "unknown_field",
        "nul_character",
    ],
)
def test_an_invalid_export_request_is_rejected(auditor: Client, body: Any) -> None:
    answer = post(auditor, API, body)

    assert answer.status_code in (400, 422)
    assert answer["Content-Type"] == "application/problem+json"


def test_a_body_over_a_mebibyte_is_rejected(auditor: Client) -> None:
    assert (
        post(auditor, API, json.dumps(EXPORT_REQUEST | {"definition": "x" * 2_000_000})).status_code
        == 413
    )


def test_a_revoked_key_cannot_request_exports(company: Company) -> None:
    key = make_service_key(company, KeyScope.EXPORTS, KeyScope.MEMBERS_READ)
    bearer = {"Authorization": f"Bearer {key.text}"}
    assert post(Client(), API, EXPORT_REQUEST, **bearer).status_code == 202

    revoke_key(
        actor=company.platform, lookup_id=key.key.lookup_id, reason="lost", now=timezone.now()
    )

    assert post(Client(), API, EXPORT_REQUEST, **bearer).status_code == 401


def test_a_key_exports_only_data_that_its_other_scopes_read(company: Company) -> None:
    key = make_service_key(company, KeyScope.EXPORTS, KeyScope.USAGE_READ)
    bearer = {"Authorization": f"Bearer {key.text}"}

    assert post(Client(), API, EXPORT_REQUEST, **bearer).status_code == 403
    definitions = Client().get(f"{API}/definitions", headers=bearer).json()["items"]
    assert {definition["name"] for definition in definitions} == {"usage_records", "usage_days"}
