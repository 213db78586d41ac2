"""The playground: who may open it, what it may connect to, and how long its key is valid."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from caret.contracts.api_key import KEY_PATTERN, parse_key
from console.limits.throttling import MAX_STARTS
from tenants.base.permissions import Role
from tenants.identity.api_keys.queries import is_key_active, list_keys
from tenants.identity.api_keys.row_writes import MAX_KEYS
from tests.fakes.keys import fill_with_keys
from tests.fixtures.companies import Cast, Company, make_company
from tests.integration.console.conftest import SignIn

PAGE, START, END = "/playground", "/playground/start", "/playground/end"
ALLOWED_ROLES = [Role.OWNER, Role.ADMINISTRATOR, Role.DEVELOPER]
REFUSED_ROLES = [Role.BILLING, Role.AUDITOR]
MAX_PLAYGROUND_QUERIES = 14  # all statements, also those that open transactions


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.ADMINISTRATOR: "bob", Role.DEVELOPER: "gus"})


def start_session(client: Client) -> dict[str, Any]:
    answer = client.post(START)
    assert answer.status_code == 200, answer.content
    session: dict[str, Any] = answer.json()
    return session


def is_active(company: Company, text: str) -> bool:
    key = parse_key(text)
    assert key is not None
    return is_key_active(tenant_id=company.tenant_id, key=key, now=timezone.now())


def count_keys(company: Company) -> int:
    actor = company.administrator.actor
    return len(list_keys(actor=actor, limit=100, cursor=None, now=timezone.now()).rows)


def test_anonymous_visitors_are_redirected_to_sign_in() -> None:
    assert Client().get(PAGE)["Location"] == f"/sign-in?next={PAGE}"


@pytest.mark.parametrize("path", [START, END])
def test_anonymous_visitors_can_neither_start_nor_end_a_session(path: str) -> None:
    assert Client().post(path)["Location"] == f"/sign-in?next={path}"


@pytest.mark.parametrize("role", ALLOWED_ROLES)
def test_roles_that_may_use_the_playground_get_its_link_and_page(
    cast: Cast, sign_in: SignIn, role: Role
) -> None:
    client = sign_in(cast.acme.people[role])

    assert client.get(PAGE).status_code == 200
    assert f'href="{PAGE}"' in client.get("/").content.decode()


@pytest.mark.parametrize("role", REFUSED_ROLES)
def test_other_roles_get_neither_the_link_nor_the_page_of_the_playground(
    cast: Cast, sign_in: SignIn, role: Role
) -> None:
    client = sign_in(cast.acme.people[role])

    assert client.get(PAGE).status_code == 403
    assert client.post(START).status_code == 403
    assert client.post(END, {"issued_at": timezone.now().isoformat()}).status_code == 403
    assert f'href="{PAGE}"' not in client.get("/").content.decode()


@pytest.mark.parametrize(("path", "method"), [(PAGE, "post"), (START, "get"), (END, "get")])
def test_other_methods_are_refused(cast: Cast, sign_in: SignIn, path: str, method: str) -> None:
    assert getattr(sign_in(cast.acme.developer), method)(path).status_code == 405


def test_the_page_may_connect_only_to_the_gateway_and_the_console(
    cast: Cast, sign_in: SignIn, settings: Settings
) -> None:
    settings.GATEWAY_URL = "https://caret.example.com/gateway"

    answer = sign_in(cast.acme.developer).get(PAGE)

    policy = answer["Content-Security-Policy"]
    assert "connect-src 'self' wss://caret.example.com;" in policy
    assert "default-src 'none'; script-src 'self';" in policy
    assert 'data-stream-url="wss://caret.example.com/gateway/v1/stream"' in answer.content.decode()


def test_each_response_has_its_own_style_nonce(cast: Cast, sign_in: SignIn) -> None:
    client = sign_in(cast.acme.developer)
    answers = [client.get(PAGE) for _ in range(2)]

    nonces = [
        re.findall(r"'nonce-([\w-]{20,})'", answer["Content-Security-Policy"]) for answer in answers
    ]

    assert [len(response_nonces) for response_nonces in nonces] == [1, 1]
    assert nonces[0] != nonces[1]
    assert f'data-nonce="{nonces[1][0]}"' in answers[1].content.decode()


def test_other_pages_may_connect_only_to_the_console(cast: Cast, sign_in: SignIn) -> None:
    policy = sign_in(cast.acme.developer).get("/")["Content-Security-Policy"]

    assert "connect-src 'self';" in policy
    assert "nonce" not in policy


def test_the_page_contains_no_key_and_runs_few_queries(company: Company, sign_in: SignIn) -> None:
    client = sign_in(company.developer)
    start_session(client)

    with CaptureQueriesContext(connection) as queries:
        page = client.get(PAGE).content.decode()

    assert KEY_PATTERN.search(page) is None
    assert len(queries) <= MAX_PLAYGROUND_QUERIES


def test_the_page_shows_a_curl_command_to_browsers_without_scripts(
    cast: Cast, sign_in: SignIn
) -> None:
    page = sign_in(cast.acme.developer).get(PAGE).content.decode()
    noscript = page.partition("<noscript>")[2].partition("</noscript>")[0]

    assert "curl http://127.0.0.1:8401/v1/completions" in noscript
    assert 'href="/account/keys"' in noscript
    assert '"def mean(values):\\n    return "' in noscript.replace("&quot;", '"')


def test_starting_creates_a_key_that_expires_in_an_hour(company: Company, sign_in: SignIn) -> None:
    answer = sign_in(company.developer).post(START)

    session = answer.json()
    assert is_active(company, session["key"])
    assert session["key"].startswith("cpk_test_")
    expires_at = datetime.fromisoformat(session["expires_at"])
    assert timedelta(minutes=30) < expires_at - timezone.now() <= timedelta(hours=1)
    assert answer["Cache-Control"] == "no-store"


def test_starting_again_revokes_the_previous_key(company: Company, sign_in: SignIn) -> None:
    client = sign_in(company.developer)

    first, second = start_session(client), start_session(client)

    assert not is_active(company, first["key"])
    assert is_active(company, second["key"])
    assert count_keys(company) == 1


def test_ending_revokes_the_key(company: Company, sign_in: SignIn) -> None:
    client = sign_in(company.developer)
    session = start_session(client)

    answer = client.post(END, {"issued_at": session["issued_at"]})

    assert (answer.status_code, answer.content) == (204, b"")
    assert not is_active(company, session["key"])


def test_ending_an_older_page_does_not_revoke_a_newer_key(
    company: Company, sign_in: SignIn
) -> None:
    client = sign_in(company.developer)
    older, newer = start_session(client), start_session(client)

    client.post(END, {"issued_at": older["issued_at"]})

    assert is_active(company, newer["key"])


def test_another_tenant_cannot_end_the_key(company: Company, cast: Cast, sign_in: SignIn) -> None:
    session = start_session(sign_in(company.developer))

    answer = sign_in(cast.globex.developer).post(END, {"issued_at": session["issued_at"]})

    assert answer.status_code == 204  # the same as for a key that has ended, so nothing is revealed
    assert is_active(company, session["key"])


@pytest.mark.parametrize(
    "issued_at", ["", "yesterday", "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00"]
)
def test_ending_requires_a_valid_time(company: Company, sign_in: SignIn, issued_at: str) -> None:
    client = sign_in(company.developer)
    session = start_session(client)

    assert client.post(END, {"issued_at": issued_at}).status_code == 400
    assert is_active(company, session["key"])


@pytest.mark.parametrize("path", [START, END])
def test_a_request_without_a_csrf_token_is_refused(
    company: Company, sign_in: SignIn, path: str
) -> None:
    signed_in = sign_in(company.developer)
    client = Client(enforce_csrf_checks=True)
    client.cookies = signed_in.cookies

    assert client.post(path).status_code == 403
    assert count_keys(company) == 0


def test_each_user_has_a_limit_of_starts_a_minute(company: Company, sign_in: SignIn) -> None:
    client = sign_in(company.developer)
    for _ in range(MAX_STARTS):
        last = start_session(client)

    refused_start = client.post(START)

    assert (refused_start.status_code, refused_start["Retry-After"]) == (429, "60")
    assert "Wait a minute" in refused_start.json()["message"]
    assert is_active(company, last["key"])
    assert sign_in(company.administrator).post(START).status_code == 200


def test_starting_beyond_the_key_limit_is_refused_with_a_message(
    company: Company, sign_in: SignIn
) -> None:
    fill_with_keys(company, MAX_KEYS)

    answer = sign_in(company.developer).post(START)

    assert answer.status_code == 409
    assert "keys, which is the limit" in answer.json()["message"]
