"""The REST API executes a request with an idempotency key once, and limits the rate of requests.

A response that the client already has (`If-None-Match`) is not sent again.
"""

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
from console.api import rate_limit, sign_in_settings
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect_to_redis
from tenants.identity.api_keys.operations import KeyRotation, rotate_key
from tenants.identity.api_keys.scopes import KeyScope
from tenants.models import ApiKey, IdempotencyRecord, Membership
from tenants.privacy.idempotency import operations
from tenants.privacy.idempotency.operations import (
    RETENTION,
    IdempotentRequest,
    delete_expired_records,
    find_response,
)
from tests.fixtures.companies import GLOBEX_PEOPLE, Cast, Company, make_company, make_service_key
from tests.fixtures.users import make_colleague
from tests.integration.console.conftest import SignIn

NEW_KEY = {"name": "Build server", "kind": "svc"}


@pytest.fixture
def company() -> Company:
    return make_company("hooli", GLOBEX_PEOPLE)


@pytest.fixture
def administrator(company: Company, sign_in: SignIn) -> Client:
    return sign_in(company.administrator)


def create_key(client: Client, idempotency_key: str | None, body: object = NEW_KEY) -> Any:
    return post(client, "keys", idempotency_key, body)


def post(client: Client, path: str, idempotency_key: str | None, body: object) -> Any:
    headers = {} if idempotency_key is None else {"Idempotency-Key": idempotency_key}
    return client.post(
        f"/api/v1/{path}", json.dumps(body), content_type="application/json", headers=headers
    )


def count_keys(company: Company) -> int:
    with tenant_scope(company.tenant_id):
        return ApiKey.objects.filter(tenant_id=company.tenant_id).count()


def test_a_request_sent_twice_is_executed_once(company: Company, administrator: Client) -> None:
    first, second = create_key(administrator, "a"), create_key(administrator, "a")

    assert (first.status_code, first.json()) == (second.status_code, second.json())
    assert first.status_code == 201
    assert (first.get("Idempotent-Replayed"), second["Idempotent-Replayed"]) == (None, "true")
    assert count_keys(company) == 1


def test_without_an_idempotency_key_a_request_is_executed_twice(
    company: Company, administrator: Client
) -> None:
    create_key(administrator, None)
    create_key(administrator, None)

    assert count_keys(company) == 2


def test_concurrent_requests_with_the_same_idempotency_key_are_executed_once(
    company: Company, sign_in: SignIn
) -> None:
    clients = [sign_in(company.administrator) for _ in range(4)]

    def send(client: Client) -> bytes:
        try:
            content: bytes = create_key(client, "at-once").content
            return content
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(clients)) as threads:
        answers = set(threads.map(send, clients))

    done = [answer for answer in answers if b'"text"' in answer]
    assert len(done) == 1
    assert all(b"idempotency_in_progress" in answer for answer in answers if answer not in done)
    assert count_keys(company) == 1


def test_a_repeated_request_in_progress_is_refused_without_waiting(
    company: Company, administrator: Client
) -> None:
    actor = company.administrator.actor
    # The same tenant, caller, permissions and idempotency key as the request that `send` sends.
    idempotent_request = IdempotentRequest(
        company.tenant_id, actor.rate_limit_key, actor.authority, "a", "POST", "/api/v1/keys", b""
    )

    def send() -> Any:
        try:
            return create_key(administrator, "a")
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as threads, tenant_scope(company.tenant_id):
        # This locks the idempotency key until the transaction ends, as a request in progress does.
        find_response(idempotent_request, now=timezone.now())
        refusal = threads.submit(send).result(timeout=300)
    done = create_key(administrator, "a")

    assert (refusal.status_code, refusal.json()["code"]) == (409, "idempotency_in_progress")
    assert done.status_code == 201


def test_a_stored_response_is_refused_after_a_change_of_role(
    company: Company, sign_in: SignIn
) -> None:
    carl = make_colleague(company, Role.ADMINISTRATOR)
    client = sign_in(carl)
    key_text = create_key(client, "a").json()["text"]

    for role in (Role.DEVELOPER, Role.OWNER):
        with tenant_scope(company.tenant_id):
            Membership.objects.filter(user_id=carl.user_id).update(role=role)
        refusal = create_key(client, "a")

        assert (refusal.status_code, refusal.json()["code"]) == (409, "idempotency_key_reused")
        assert key_text not in refusal.content.decode()


def test_a_rotated_keys_old_secret_gets_no_stored_response(company: Company) -> None:
    service_key = make_service_key(company, KeyScope.KEYS_WRITE, KeyScope.INFERENCE)
    key_client = Client(headers={"Authorization": f"Bearer {service_key.text}"})
    first = create_key(key_client, "a")
    rotate_key(
        actor=company.platform,
        lookup_id=service_key.key.lookup_id,
        rotation=KeyRotation(overlap=timedelta(hours=1)),
        now=timezone.now(),
    )

    repeat = create_key(key_client, "a")

    assert (first.status_code, repeat.status_code) == (201, 409)


def test_mail_is_sent_after_the_transaction(
    company: Company, administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The test observes the mail backend, so that none of our own modules is patched."""
    transaction_states: list[bool] = []

    def record_send(messages: Any) -> int:
        transaction_states.append(connection.in_atomic_block)
        return len(messages)

    monkeypatch.setattr(EmailBackend, "send_messages", lambda _, messages: record_send(messages))
    body = {"email": "guest@elsewhere.example"}

    first = post(administrator, "invitations", "a", body)
    second = post(administrator, "invitations", "a", body)

    assert (first.status_code, second["Idempotent-Replayed"]) == (201, "true")
    assert transaction_states == [False]
    (invitation,) = administrator.get("/api/v1/invitations").json()["items"]
    assert invitation["mailed_at"] is not None


def test_requests_that_contact_other_hosts_are_repeated_outside_of_a_transaction(
    company: Company, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction_states: list[bool] = []

    def resolve(_: str) -> list[str]:
        transaction_states.append(connection.in_atomic_block)
        return []

    monkeypatch.setattr(sign_in_settings, "look_up_txt_records", resolve)
    owner = sign_in(make_colleague(company, Role.OWNER))
    domain = post(owner, "domains", None, {"name": f"{company.slug}.example"}).json()

    for _ in range(2):
        refusal = post(owner, f"domains/{domain['id']}/verify", "a", {})
        assert refusal.status_code == 409

    assert transaction_states == [False, False]


def test_an_idempotent_request_counts_once_against_the_rate_limit(
    company: Company, administrator: Client
) -> None:
    caller = company.administrator.actor.rate_limit_key
    connect_to_redis().delete(f"caret:throttle:api:{caller}")

    create_key(administrator, "a")

    assert connect_to_redis().get(f"caret:throttle:api:{caller}") == b"1"


def test_an_unauthenticated_request_runs_no_extra_queries() -> None:
    unknown_key = generate_key(KeyKind.SERVICE)
    key_client = Client(headers={"Authorization": f"Bearer {unknown_key.text}"})

    with CaptureQueriesContext(connection) as without_idempotency_key:
        create_key(key_client, None)
    with CaptureQueriesContext(connection) as with_idempotency_key:
        refusal = create_key(key_client, "a")

    assert (refusal.status_code, refusal.json()["code"]) == (401, "invalid_api_key")
    assert len(with_idempotency_key) == len(without_idempotency_key)


def test_each_tenant_has_a_limit_of_stored_responses(
    company: Company,
    administrator: Client,
    sign_in: SignIn,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(operations, "MAX_RESPONSES", 2)
    first, second, third = (create_key(administrator, idempotency_key) for idempotency_key in "abc")

    assert (first.status_code, second.status_code) == (201, 201)
    assert (third.status_code, third.json()["code"]) == (409, "idempotency_storage_full")
    assert count_keys(company) == 2
    assert create_key(administrator, "a")["Idempotent-Replayed"] == "true"
    assert create_key(administrator, None).status_code == 201
    other_tenant = sign_in(make_company("umbrella", GLOBEX_PEOPLE).administrator)
    assert create_key(other_tenant, "a").status_code == 201


def test_a_request_with_a_response_too_large_to_store_is_rolled_back(
    company: Company, administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "MAX_RESPONSE_BYTES", 10)

    refusal = create_key(administrator, "a")

    assert (refusal.status_code, refusal.json()["code"]) == (409, "idempotency_storage_full")
    assert count_keys(company) == 0


def test_a_body_over_a_mebibyte_is_refused(company: Company) -> None:
    service_key = make_service_key(company, KeyScope.KEYS_WRITE)
    key_client = Client(headers={"Authorization": f"Bearer {service_key.text}"})

    refusal = create_key(key_client, "a", NEW_KEY | {"name": "x" * 1_100_000})

    assert (refusal.status_code, refusal.json()["code"]) == (413, "too_large")


def test_an_idempotency_key_reused_for_another_request_is_refused(
    company: Company, administrator: Client
) -> None:
    create_key(administrator, "a")

    refusal = create_key(administrator, "a", NEW_KEY | {"name": "Another"})

    assert (refusal.status_code, refusal.json()["code"]) == (409, "idempotency_key_reused")
    assert count_keys(company) == 1


def test_a_rejected_request_can_be_corrected_with_the_same_idempotency_key(
    company: Company, administrator: Client
) -> None:
    refusal = create_key(administrator, "a", NEW_KEY | {"kind": "gold"})

    corrected = create_key(administrator, "a")

    assert (refusal.status_code, corrected.status_code) == (422, 201)


def test_idempotency_keys_of_two_users_are_independent(cast: Cast, sign_in: SignIn) -> None:
    first = create_key(sign_in(cast.acme.administrator), "colleague")
    second = create_key(sign_in(cast.acme.people[Role.OWNER]), "colleague")

    assert first.json()["text"] != second.json()["text"]


def test_idempotency_keys_of_two_tenants_are_independent(cast: Cast, sign_in: SignIn) -> None:
    our_key = create_key(sign_in(cast.acme.administrator), "neighbour")
    their_key = create_key(sign_in(cast.globex.administrator), "neighbour")

    assert "Idempotent-Replayed" not in their_key
    assert our_key.json()["text"] != their_key.json()["text"]


def test_stored_responses_are_encrypted(company: Company, administrator: Client) -> None:
    text = create_key(administrator, "a").json()["text"]

    with tenant_scope(company.tenant_id):
        record = IdempotencyRecord.objects.get(tenant_id=company.tenant_id)
    assert text.encode() not in bytes(record.sealed_body)


def test_expired_records_are_deleted(company: Company, administrator: Client) -> None:
    create_key(administrator, "a")

    early = delete_expired_records(now=timezone.now(), tenant_ids=[company.tenant_id])
    late = delete_expired_records(now=timezone.now() + RETENTION, tenant_ids=[company.tenant_id])

    assert (early, late) == (0, 1)


def test_an_expired_idempotency_key_can_be_used_again(
    company: Company, administrator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_key(administrator, "a")
    monkeypatch.setattr(operations, "RETENTION", timedelta(0))

    repeat = create_key(administrator, "a")

    assert "Idempotent-Replayed" not in repeat
    assert count_keys(company) == 2


@pytest.mark.parametrize("idempotency_key", ["", "two words", "é", "x" * 256])
def test_an_invalid_idempotency_key_is_rejected(
    administrator: Client, idempotency_key: str
) -> None:
    refusal = create_key(administrator, idempotency_key)

    assert (refusal.status_code, refusal.json()["field"]) == (422, "Idempotency-Key")


def test_an_anonymous_request_gets_no_stored_response(
    company: Company, administrator: Client
) -> None:
    create_key(administrator, "a")

    assert create_key(Client(), "a").status_code == 401


def test_an_unchanged_response_is_not_sent_again(administrator: Client) -> None:
    first = administrator.get("/api/v1/policy")

    repeat = administrator.get("/api/v1/policy", headers={"If-None-Match": first["ETag"]})

    assert (repeat.status_code, repeat.content) == (304, b"")
    assert [answer["Cache-Control"] for answer in (first, repeat)] == ["no-store", "no-store"]


def test_a_changed_response_is_sent(administrator: Client) -> None:
    first = administrator.get("/api/v1/keys")
    create_key(administrator, None)

    repeat = administrator.get("/api/v1/keys", headers={"If-None-Match": first["ETag"]})

    assert repeat.status_code == 200


@pytest.fixture
def set_request_count() -> Callable[[Company, int], None]:
    """Return a function that sets how many requests the administrator made in this minute."""

    def set_count(company: Company, count: int) -> None:
        caller = company.administrator.actor.rate_limit_key
        connect_to_redis().set(f"caret:throttle:api:{caller}", count, ex=60)

    return set_count


def test_a_request_over_the_rate_limit_gets_a_retry_after(
    company: Company, administrator: Client, set_request_count: Callable[[Company, int], None]
) -> None:
    set_request_count(company, rate_limit.MAX_PER_MINUTE - 1)

    last, refusal = administrator.get("/api/v1/policy"), administrator.get("/api/v1/policy")

    assert (last.status_code, refusal.status_code) == (200, 429)
    assert refusal.json()["code"] == "too_many_requests"
    assert 1 <= int(refusal["Retry-After"]) <= 60


def test_the_rate_limit_of_one_user_does_not_affect_a_colleague(
    company: Company, sign_in: SignIn, set_request_count: Callable[[Company, int], None]
) -> None:
    set_request_count(company, rate_limit.MAX_PER_MINUTE)

    assert sign_in(company.administrator).get("/api/v1/policy").status_code == 429
    assert sign_in(company.developer).get("/api/v1/policy").status_code == 200
