"""Idempotency keys and conditional requests."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.core.mail.backends.locmem import EmailBackend
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from caret.contracts.api_key import KeyKind, generate_key
from caret.foundation.postgres.tenant_scope import tenant_scope
from console.api import sign_in_settings
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect
from tenants.identity.api_keys.operations import KeyRotation, rotate_key
from tenants.identity.api_keys.scopes import KeyScope
from tenants.models import ApiKey, IdempotencyRecord, Membership
from tenants.privacy.idempotency import operations
from tenants.privacy.idempotency.operations import (
    KEPT_FOR,
    IdempotentRequest,
    delete_expired,
    find_response,
)
from tests.fixtures.companies import GLOBEX, Cast, Company, make_company, make_service_key
from tests.fixtures.users import make_colleague
from tests.integration.console.conftest import SignIn

NEW_KEY = {"name": "Build server", "kind": "svc"}


@pytest.fixture
def company() -> Company:
    return make_company("hooli", GLOBEX)


@pytest.fixture
def administrator(company: Company, sign_in: SignIn) -> Client:
    return sign_in(company.administrator)


def make(client: Client, key: str | None, body: object = NEW_KEY) -> Any:
    return post(client, "keys", key, body)


def post(client: Client, path: str, key: str | None, body: object) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post(
        f"/api/v1/{path}", json.dumps(body), content_type="application/json", headers=headers
    )


def num_keys(company: Company) -> int:
    with tenant_scope(company.tenant_id):
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

    done = [answer for answer in answers if b'"text"' in answer]
    assert len(done) == 1
    assert all(b"idempotency_in_progress" in answer for answer in answers if answer not in done)
    assert num_keys(company) == 1


def test_who_comes_while_it_is_done_is_told_so_and_waits_for_nothing(
    company: Company, administrator: Client
) -> None:
    actor = company.administrator.actor
    word = IdempotentRequest(
        company.tenant_id, actor.rate_limit_key, actor.authority, "a", "POST", "/api/v1/keys", b""
    )

    def ask() -> Any:
        try:
            return make(administrator, "a")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads, tenant_scope(company.tenant_id):
        find_response(word, now=timezone.now())
        refused = threads.submit(ask).result(timeout=10)
    done = make(administrator, "a")

    assert (refused.status_code, refused.json()["code"]) == (409, "idempotency_in_progress")
    assert done.status_code == 201


def test_an_answer_is_for_who_may_do_what_he_might_do_then(
    company: Company, sign_in: SignIn
) -> None:
    carl = make_colleague(company, Role.ADMINISTRATOR)
    client = sign_in(carl)
    first = make(client, "a").json()["text"]

    for role in (Role.DEVELOPER, Role.OWNER):
        with tenant_scope(company.tenant_id):
            Membership.objects.filter(user_id=carl.user_id).update(role=role)
        refused = make(client, "a")

        assert (refused.status_code, refused.json()["code"]) == (409, "idempotency_key_reused")
        assert first not in refused.content.decode()


def test_the_old_text_of_a_rotated_key_gets_no_answer_of_before(company: Company) -> None:
    made = make_service_key(company, KeyScope.KEYS_WRITE, KeyScope.INFERENCE)
    bearing = Client(headers={"Authorization": f"Bearer {made.text}"})
    first = make(bearing, "a")
    rotate_key(
        actor=company.platform,
        lookup_id=made.key.lookup_id,
        rotation=KeyRotation(overlap=timedelta(hours=1)),
        now=timezone.now(),
    )

    again = make(bearing, "a")

    assert (first.status_code, again.status_code) == (201, 409)


def test_mail_goes_out_when_nothing_is_locked_any_more(
    company: Company, administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Observed at the mail backend, so that none of our own modules is patched."""
    seen: list[bool] = []

    def sent(messages: Any) -> int:
        seen.append(connection.in_atomic_block)
        return len(messages)

    monkeypatch.setattr(EmailBackend, "send_messages", lambda _, messages: sent(messages))
    body = {"email": "guest@elsewhere.example"}

    first = post(administrator, "invitations", "a", body)
    second = post(administrator, "invitations", "a", body)

    assert (first.status_code, second["Idempotent-Replayed"]) == (201, "true")
    assert seen == [False]
    (listed,) = administrator.get("/api/v1/invitations").json()["items"]
    assert listed["mailed_at"] is not None


def test_what_waits_for_others_is_done_anew_and_in_no_transaction(
    company: Company, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def resolve(_: str) -> list[str]:
        seen.append(connection.in_atomic_block)
        return []

    monkeypatch.setattr(sign_in_settings, "txt_records", resolve)
    owner = sign_in(make_colleague(company, Role.OWNER))
    domain = post(owner, "domains", None, {"name": f"{company.slug}.example"}).json()

    for _ in range(2):
        refused = post(owner, f"domains/{domain['id']}/verify", "a", {})
        assert refused.status_code == 409

    assert seen == [False, False]


def test_who_calls_is_asked_once(company: Company, administrator: Client) -> None:
    caller = company.administrator.actor.rate_limit_key
    connect().delete(f"caret:throttle:api:{caller}")

    make(administrator, "a")

    assert connect().get(f"caret:throttle:api:{caller}") == b"1"


def test_who_is_refused_is_asked_once_as_well() -> None:
    stranger = generate_key(KeyKind.SERVICE)
    bearing = Client(headers={"Authorization": f"Bearer {stranger.text}"})

    with CaptureQueriesContext(connection) as without:
        make(bearing, None)
    with CaptureQueriesContext(connection) as named:
        refused = make(bearing, "a")

    assert (refused.status_code, refused.json()["code"]) == (401, "invalid_api_key")
    assert len(named) == len(without)


def test_a_tenant_has_so_many_answers_kept_and_no_more(
    company: Company,
    administrator: Client,
    cast: Cast,
    sign_in: SignIn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operations, "MAX_ANSWERS", 2)
    first, second, third = (make(administrator, word) for word in "abc")

    assert (first.status_code, second.status_code) == (201, 201)
    assert (third.status_code, third.json()["code"]) == (409, "idempotency_storage_full")
    assert num_keys(company) == 2
    assert make(administrator, "a")["Idempotent-Replayed"] == "true"
    assert make(administrator, None).status_code == 201
    assert make(sign_in(make_company("umbrella", GLOBEX).administrator), "a").status_code == 201


def test_what_is_too_large_to_be_kept_is_not_done(
    company: Company, administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MAX_ANSWER_BYTES", 10)

    refused = make(administrator, "a")

    assert (refused.status_code, refused.json()["code"]) == (409, "idempotency_storage_full")
    assert num_keys(company) == 0


def test_a_body_over_a_mebibyte_is_refused_before_anything_is_locked(company: Company) -> None:
    made = make_service_key(company, KeyScope.KEYS_WRITE)
    bearing = Client(headers={"Authorization": f"Bearer {made.text}"})

    refused = make(bearing, "a", NEW_KEY | {"name": "x" * 1_100_000})

    assert (refused.status_code, refused.json()["code"]) == (413, "too_large")


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

    with tenant_scope(company.tenant_id):
        kept = IdempotencyRecord.objects.get(tenant_id=company.tenant_id)
    assert text.encode() not in bytes(kept.sealed_body)


def test_after_a_day_nothing_is_kept(company: Company, administrator: Client) -> None:
    make(administrator, "a")

    early = delete_expired(now=timezone.now(), tenant_ids=[company.tenant_id])
    late = delete_expired(now=timezone.now() + KEPT_FOR, tenant_ids=[company.tenant_id])

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
    assert [answer["Cache-Control"] for answer in (first, again)] == ["no-store", "no-store"]


def test_an_answer_that_has_changed_is_sent(administrator: Client) -> None:
    first = administrator.get("/api/v1/keys")
    make(administrator, None)

    again = administrator.get("/api/v1/keys", headers={"If-None-Match": first["ETag"]})

    assert again.status_code == 200


@pytest.fixture
def taken() -> Callable[[Company, int], None]:
    def take(company: Company, count: int) -> None:
        caller = company.administrator.actor.rate_limit_key
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
