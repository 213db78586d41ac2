"""Idempotency records (stored responses) that a legal hold keeps beyond their expiry."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import ApiKey, IdempotencyRecord
from tenants.privacy.idempotency import operations
from tenants.privacy.retention.operations import NewHold, place_hold, release_hold
from tests.fixtures.companies import GLOBEX_PEOPLE, Company, make_company
from tests.integration.console.conftest import SignIn


@pytest.fixture
def company() -> Company:
    return make_company("hooli", GLOBEX_PEOPLE)


@pytest.fixture
def administrator(company: Company, sign_in: SignIn) -> Client:
    return sign_in(company.administrator)


def create_key(client: Client, idempotency_key: str) -> Any:
    body = json.dumps({"name": "Build server", "kind": "svc"})
    headers = {"Idempotency-Key": idempotency_key}
    return client.post("/api/v1/keys", body, content_type="application/json", headers=headers)


def count_keys(company: Company) -> int:
    with tenant_scope(company.tenant_id):
        return ApiKey.objects.filter(tenant_id=company.tenant_id).count()


def test_a_legal_hold_keeps_an_idempotency_key_in_use_until_its_release(
    company: Company, administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = company.administrator.actor
    create_key(administrator, "a")
    # From now on, every record has expired.
    monkeypatch.setattr(operations, "RETENTION", timedelta(0))
    hold_id = place_hold(actor=alice, new=NewHold("matter", "letter"), now=timezone.now())

    reused = create_key(administrator, "a")
    with tenant_scope(company.tenant_id):
        num_records = IdempotencyRecord.objects.count()
    release_hold(actor=alice, hold_id=hold_id, reason="settled", now=timezone.now())
    after_release = create_key(administrator, "a")

    assert (reused.status_code, reused.json()["code"]) == (409, "idempotency_key_reused")
    assert "hold" not in reused.content.decode()  # the response does not reveal it
    assert (num_records, after_release.status_code, count_keys(company)) == (1, 201, 2)


def test_records_kept_only_by_a_hold_do_not_count_against_the_limit(
    company: Company, administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = company.administrator.actor
    place_hold(actor=alice, new=NewHold("matter", "letter"), now=timezone.now())
    monkeypatch.setattr(operations, "MAX_RESPONSES", 2)
    # Every record expires at once.
    monkeypatch.setattr(operations, "RETENTION", timedelta(0))

    statuses = [create_key(administrator, idempotency_key).status_code for idempotency_key in "abc"]

    assert statuses == [201, 201, 201]
    with tenant_scope(company.tenant_id):
        assert IdempotencyRecord.objects.count() == 3
