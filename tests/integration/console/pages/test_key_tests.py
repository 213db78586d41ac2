"""The page that tests a key by one completion through the gateway, and shows the result."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from caret.contracts.api_key import KeyKind
from console.limits.throttling import MAX_KEY_TESTS
from tenants.identity.api_keys.operations import create_key, revoke_key
from tenants.identity.api_keys.scopes import KeyScope
from tenants.identity.api_keys.validation import KeyRequest
from tests.fakes.server_thread import serving_in_thread
from tests.fixtures.companies import (
    ACME_PEOPLE,
    GLOBEX_PEOPLE,
    Company,
    make_company,
    make_key,
    make_service_key,
)
from tests.integration.console.conftest import SignIn

HTMX_HEADERS = {"HX-Request": "true"}
COMPLETED = {"choices": [{"text": "sum(values)"}]}
CHATTED = {"choices": [{"message": {"role": "assistant", "content": "ready"}}]}


@dataclass
class Gateway:
    """A fake gateway that gives every HTTP request the same response."""

    url: str = ""
    status: int = 200
    body: Any = field(default_factory=lambda: COMPLETED)
    finish_reason: str = "stop"
    requests: list[tuple[str, str]] = field(default_factory=list)  # path and authorization


@contextmanager
def running_gateway(gateway: Gateway) -> Iterator[Gateway]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            gateway.requests.append((self.path, self.headers["Authorization"]))
            content = json.dumps(gateway.body).encode()
            self.send_response(gateway.status)
            self.send_header("X-Caret-Finish-Reason", gateway.finish_reason)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    gateway.url = f"http://127.0.0.1:{server.server_port}"
    with serving_in_thread(server):
        yield gateway


@pytest.fixture
def gateway(settings: Any) -> Iterator[Gateway]:
    with running_gateway(Gateway()) as started:
        settings.GATEWAY_URL = started.url
        yield started


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


@pytest.fixture
def client(company: Company, sign_in: SignIn) -> Client:
    return sign_in(company.administrator)


def result_of(client: Client, key: str) -> str:
    return client.post("/keys/test", {"key": key}, headers=HTMX_HEADERS).content.decode()


def error_body(code: str) -> dict[str, dict[str, str]]:
    return {"error": {"code": code, "message": "From the gateway."}}


def test_a_working_key_shows_the_completion_and_its_time(
    gateway: Gateway, company: Company, client: Client
) -> None:
    key = make_key(company, company.developer).text

    part = result_of(client, key)

    assert gateway.requests == [("/v1/completions", f"Bearer {key}")]
    assert "The key works." in part
    assert "sum(values)" in part
    assert " ms)" in part
    assert "<html" not in part


def test_a_chat_key_is_tested_with_a_chat(
    gateway: Gateway, company: Company, client: Client
) -> None:
    gateway.body = CHATTED
    key = make_service_key(company, KeyScope.CHAT).text

    assert "ready" in result_of(client, key)
    assert [path for path, _ in gateway.requests] == ["/v1/chat/completions"]


@pytest.mark.parametrize(
    ("status", "body", "finish_reason", "reason"),
    [
        (401, error_body("expired_api_key"), "", "The key has expired."),
        (401, error_body("invalid_api_key"), "", "does not know this key"),
        (403, error_body("feature_disabled"), "", "Your policy does not allow this mode."),
        (503, error_body("unheard_of"), "", "From the gateway."),
        (502, "nothing", "", "HTTP 502"),
        (200, COMPLETED, "budget_exceeded", "A hard budget is used up."),
        (200, COMPLETED, "shed", "There is no capacity right now. Try again in a moment."),
    ],
)
def test_the_result_states_why_the_gateway_refused_the_completion(
    gateway: Gateway,
    company: Company,
    client: Client,
    *,
    status: int,
    body: Any,
    finish_reason: str,
    reason: str,
) -> None:
    gateway.status, gateway.body, gateway.finish_reason = status, body, finish_reason

    part = result_of(client, make_key(company, company.developer).text)

    assert reason in part
    assert "note-bad" in part


def test_the_result_names_a_gateway_that_is_unreachable(
    settings: Any, company: Company, client: Client
) -> None:
    settings.GATEWAY_URL = "http://127.0.0.1:9"  # no process listens on this port

    assert settings.GATEWAY_URL in result_of(client, make_key(company, company.developer).text)


def test_a_key_limited_to_other_networks_gets_an_explanation(
    gateway: Gateway, company: Company, client: Client
) -> None:
    gateway.status, gateway.body = 401, error_body("invalid_api_key")
    key = make_service_key(company, KeyScope.INFERENCE, networks=("192.0.2.0/24",)).text

    assert "only from certain networks" in result_of(client, key)


def test_keys_that_the_member_cannot_see_are_not_sent_to_the_gateway(
    gateway: Gateway, company: Company, client: Client, sign_in: SignIn
) -> None:
    other_company = make_company("hooli", ACME_PEOPLE)
    foreign_key = make_key(other_company, other_company.developer).text
    administrators_key = make_key(company, company.administrator).text

    for browser, key in [
        (client, foreign_key),
        (client, "cpk_live_nonsense"),
        (client, "x" * 100_000),
        (client, "\0"),
        (client, ""),
        (sign_in(company.developer), administrators_key),
    ]:
        answer = browser.post("/keys/test", {"key": key})
        assert answer.status_code == 400
        assert "does not match any key that you can see" in answer.content.decode()
    assert gateway.requests == []


def test_a_revoked_key_is_sent_to_the_gateway_and_reported_as_revoked(
    gateway: Gateway, company: Company, client: Client
) -> None:
    key = make_key(company, company.developer)
    revoke_key(
        actor=company.platform, lookup_id=key.key.lookup_id, reason="lost", now=timezone.now()
    )
    gateway.status, gateway.body = 401, error_body("revoked_api_key")

    assert "The key is revoked." in result_of(client, key.text)
    assert len(gateway.requests) == 1


def test_a_key_without_http_modes_gets_an_explanation_and_no_test_button(
    gateway: Gateway, company: Company, client: Client
) -> None:
    key_request = KeyRequest(
        kind=KeyKind.DEVELOPER,
        owner_id=company.developer.user_id,
        name="Blocks",
        expires_at=None,
        scopes=frozenset({KeyScope.BLOCK}),
    )
    created = create_key(actor=company.platform, new=key_request, now=timezone.now())

    assert "over HTTP" in result_of(client, created.text)
    assert gateway.requests == []
    assert "Test this key" not in client.get(f"/keys/{created.key.lookup_id}").content.decode()


def test_the_number_of_key_tests_is_limited(
    gateway: Gateway, company: Company, client: Client
) -> None:
    key = make_key(company, company.developer).text

    results = [result_of(client, key) for _ in range(MAX_KEY_TESTS + 1)]

    assert "Too many tests" in results[-1]
    assert len(gateway.requests) == MAX_KEY_TESTS


def test_anonymous_visitors_are_redirected_to_sign_in() -> None:
    assert Client().post("/keys/test", {"key": "x"})["Location"].startswith("/sign-in")
