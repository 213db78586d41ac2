"""Requests that are sent twice, and answers that one has already."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from caret.foundation.postgres.tenancy import tenant
from tenants.idempotency import operations
from tenants.idempotency.operations import KEPT_FOR, forget_answers
from tenants.keyvalue import connect
from tenants.members.permissions import Role
from tenants.models import ApiKey, KeptAnswer
from tests.cast import GLOBEX, Cast, Company, make_company
from tests.integration.console.conftest import SignIn

NEW_KEY = {"name": "Build server", "kind": "svc"}


@pytest.fixture
def company() -> Company:
    return make_company("hooli", GLOBEX)


@pytest.fixture
def administrator(company: Company, sign_in: SignIn) -> Client:
    return sign_in(company.administrator)


def make(client: Client, key: str | None, body: object = NEW_KEY) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post(
        "/api/v1/keys", json.dumps(body), content_type="application/json", headers=headers
    )


def num_keys(company: Company) -> int:
    with tenant(company.tenant_id):
        return ApiKey.objects.filter(tenant_id=company.tenant_id).count()


def test_what_is_sent_twice_is_done_once(company: Company, administrator: Client) -> None:
    first, second = make(administrator, "a"), make(administrator, "a")

    assert (first.status_code, first.json()) == (second.status_code, second.json())
    assert first.status_code == 201
    assert (first.get("Idempotent-Replayed"), second["Idempotent-Replayed"]) == (None, "true")
    assert num_keys(company) == 1


def test_without_the_header_it_is_done_twice(company: Company, administrator: Client) -> None:
    make(administrator, None)
    make(administrator, None)

    assert num_keys(company) == 2


def test_two_at_once_are_done_once(company: Company, sign_in: SignIn) -> None:
    clients = [sign_in(company.administrator) for _ in range(4)]

    def ask(client: Client) -> bytes:
        try:
            content: bytes = make(client, "at-once").content
            return content
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(clients)) as threads:
        answers = set(threads.map(ask, clients))

    assert len(answers) == 1
    assert num_keys(company) == 1


def test_the_same_word_for_another_request_is_refused(
    company: Company, administrator: Client
) -> None:
    make(administrator, "a")

    refused = make(administrator, "a", NEW_KEY | {"name": "Another"})

    assert (refused.status_code, refused.json()["code"]) == (409, "idempotency_key_reused")
    assert num_keys(company) == 1


def test_a_request_that_was_refused_may_be_mended_under_the_same_word(
    company: Company, administrator: Client
) -> None:
    refused = make(administrator, "a", NEW_KEY | {"kind": "gold"})

    mended = make(administrator, "a")

    assert (refused.status_code, mended.status_code) == (422, 201)


def test_a_colleague_s_word_is_his_own(cast: Cast, sign_in: SignIn) -> None:
    first = make(sign_in(cast.acme.administrator), "colleague")
    second = make(sign_in(cast.acme.people[Role.OWNER]), "colleague")

    assert first.json()["text"] != second.json()["text"]


def test_the_neighbour_s_word_is_his_own(cast: Cast, sign_in: SignIn) -> None:
    ours = make(sign_in(cast.acme.administrator), "neighbour")
    theirs = make(sign_in(cast.globex.administrator), "neighbour")

    assert "Idempotent-Replayed" not in theirs
    assert ours.json()["text"] != theirs.json()["text"]


def test_what_is_kept_can_be_read_by_nobody_without_the_key(
    company: Company, administrator: Client
) -> None:
    text = make(administrator, "a").json()["text"]

    with tenant(company.tenant_id):
        kept = KeptAnswer.objects.get(tenant_id=company.tenant_id)
    assert text.encode() not in bytes(kept.sealed_body)


def test_after_a_day_nothing_is_kept(company: Company, administrator: Client) -> None:
    make(administrator, "a")

    early = forget_answers(now=timezone.now(), tenant_ids=[company.tenant_id])
    late = forget_answers(now=timezone.now() + KEPT_FOR, tenant_ids=[company.tenant_id])

    assert (early, late) == (0, 1)


def test_a_word_that_is_a_day_old_is_new_again(
    company: Company, administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(administrator, "a")
    monkeypatch.setattr(operations, "KEPT_FOR", timedelta(0))

    again = make(administrator, "a")

    assert "Idempotent-Replayed" not in again
    assert num_keys(company) == 2


@pytest.mark.parametrize("key", ["", "two words", "é", "x" * 256])
def test_a_word_that_is_none_is_refused_by_its_name(administrator: Client, key: str) -> None:
    refused = make(administrator, key)

    assert (refused.status_code, refused.json()["field"]) == (422, "Idempotency-Key")


def test_who_is_not_signed_in_learns_nothing_of_kept_answers(
    company: Company, administrator: Client
) -> None:
    make(administrator, "a")

    assert make(Client(), "a").status_code == 401


def test_an_answer_that_one_has_already_is_not_sent_again(administrator: Client) -> None:
    first = administrator.get("/api/v1/policy")

    again = administrator.get("/api/v1/policy", headers={"If-None-Match": first["ETag"]})

    assert (again.status_code, again.content) == (304, b"")
    assert first["Cache-Control"] == "private, no-cache"


def test_an_answer_that_has_changed_is_sent(administrator: Client) -> None:
    first = administrator.get("/api/v1/keys")
    make(administrator, None)

    again = administrator.get("/api/v1/keys", headers={"If-None-Match": first["ETag"]})

    assert again.status_code == 200


@pytest.fixture
def taken() -> Callable[[Company, int], None]:
    def take(company: Company, count: int) -> None:
        caller = company.administrator.actor.caller
        connect().set(f"caret:throttle:api:{caller}", count, ex=60)

    return take


def test_who_asks_too_often_is_told_when_to_ask_again(
    company: Company, administrator: Client, taken: Callable[[Company, int], None]
) -> None:
    taken(company, 599)

    last, refused = administrator.get("/api/v1/policy"), administrator.get("/api/v1/policy")

    assert (last.status_code, refused.status_code) == (200, 429)
    assert refused.json()["code"] == "too_many_requests"
    assert 1 <= int(refused["Retry-After"]) <= 60


def test_a_colleague_is_not_held_up(
    company: Company, sign_in: SignIn, taken: Callable[[Company, int], None]
) -> None:
    taken(company, 10_000)

    assert sign_in(company.developer).get("/api/v1/policy").status_code == 200
