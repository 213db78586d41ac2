"""Users give and withdraw their consent over the REST API, and read their receipts."""

import hashlib
from http import HTTPStatus
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tenants.policy.document import DEFAULT_POLICY, serialize_policy
from tenants.policy.operations import set_policy
from tests.fixtures.companies import ACME_PEOPLE, Company, make_company
from tests.integration.console.conftest import SignIn

PATH = "/api/v1/consent"
CURRENT_CONSENT_TEXTS = {"consent_texts": ["content-capture-1", "training-1"]}


@pytest.fixture
def consenting_company() -> Company:
    """Make a company whose policy allows content capture and training. No user has consented."""
    company = make_company("acme", ACME_PEOPLE)
    content_capture = {"consent_text": "tenant-1", "retention_days": 30, "training": True}
    set_policy(
        actor=company.administrator.actor,
        document=serialize_policy(DEFAULT_POLICY) | {"content_capture": content_capture},
        reason="a test",
        now=timezone.now(),
    )
    return company


@pytest.fixture
def ada(consenting_company: Company, sign_in: SignIn) -> Client:
    """Return the browser of Ada, the developer."""
    return sign_in(consenting_company.developer)


def put_consent(client: Client, **body: Any) -> Any:
    return client.put(PATH, data=body, content_type="application/json")


def test_consent_texts_are_returned_with_their_digests(ada: Client) -> None:
    consent = ada.get(PATH).json()

    assert consent["allowance"] == {"content_capture": True, "training": True}
    assert consent["retention_days"] == 30
    assert {
        consent_text["kind"]: consent_text["version"] for consent_text in consent["consent_texts"]
    } == {
        "content_capture": "content-capture-1",
        "training": "training-1",
    }
    for consent_text in consent["consent_texts"]:
        assert consent_text["sha256"] == hashlib.sha256(consent_text["text"].encode()).hexdigest()


def test_a_user_consents_and_withdraws(ada: Client) -> None:
    agreed = put_consent(ada, content_capture=True, **CURRENT_CONSENT_TEXTS).json()["consent"]

    withdrawn = ada.delete(PATH).json()["consent"]

    assert agreed == {"content_capture": True, "training": False}
    assert withdrawn == {"content_capture": False, "training": False}
    receipts = ada.get(f"{PATH}/receipts").json()["items"]
    assert [receipt["is_granted"] for receipt in receipts] == [False, True]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"content_capture": True}, "consent_texts"),
        ({"content_capture": True, "consent_texts": ["content-capture-0"]}, "consent_texts"),
        # Training needs content capture.
        ({"content_capture": False, "training": True, **CURRENT_CONSENT_TEXTS}, "training"),
        ({"training": True}, "content_capture"),
        ({"content_capture": "perhaps"}, "content_capture"),
        ({"content_capture": True, **CURRENT_CONSENT_TEXTS, "user": "somebody"}, "user"),
    ],
)
def test_an_invalid_consent_is_rejected_with_the_fields_name(
    ada: Client, body: dict[str, Any], field: str
) -> None:
    refusal = put_consent(ada, **body)

    assert refusal.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert refusal.json()["field"] == field


def test_consent_that_the_tenant_does_not_allow_is_a_conflict(sign_in: SignIn) -> None:
    company = make_company("acme", ACME_PEOPLE)

    refusal = put_consent(sign_in(company.developer), content_capture=True, **CURRENT_CONSENT_TEXTS)

    assert refusal.status_code == HTTPStatus.CONFLICT


def test_receipts_are_paginated(ada: Client) -> None:
    put_consent(ada, content_capture=True, training=True, **CURRENT_CONSENT_TEXTS)
    ada.delete(PATH)

    first = ada.get(f"{PATH}/receipts?limit=3").json()
    second = ada.get(f"{PATH}/receipts?limit=3&cursor={first['next_cursor']}").json()

    # Two receipts of the consent, and two of the withdrawal.
    ids = [receipt["id"] for receipt in (*first["items"], *second["items"])]
    assert (len(first["items"]), len(set(ids)), second["next_cursor"]) == (3, 4, None)
