"""A copy of the database allows no sign-in: secrets are stored as hashes, or sealed."""

import re
from collections.abc import Iterator

import psycopg
import pytest
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore as PlainStore
from django.contrib.sessions.models import Session
from django.utils import timezone
from psycopg.sql import SQL, Identifier

from caret.local.databases.credentials import DATABASE, SUPERUSER, read_password
from console.sign_in.sessions.session_store import SessionStore
from tenants.base.permissions import Role
from tenants.identity.scim.tokens import create_scim_token
from tests.fixtures.companies import Company, Person, make_company, make_key
from tests.fixtures.users import Mailbox, send_invitation
from tests.integration.operators.browsers import OPERATOR_SESSION_COOKIE
from tests.integration.operators.browsers import new_browser as new_operators_browser
from tests.integration.operators.browsers import signed_in as signed_in_operator
from tests.integration.sign_in.browser import Browser, new_browser
from tests.integration.sign_in.by_provider import fresh_client
from tests.stack.services import Services

COOKIE = settings.SESSION_COOKIE_NAME


@pytest.fixture
def hooli() -> Company:
    return make_company("hooli", {Role.OWNER: "hank"})


@pytest.fixture
def person(hooli: Company) -> Person:
    return hooli.people[Role.OWNER]


@pytest.fixture
def browser(person: Person) -> Browser:
    signed_in_browser = new_browser(person)
    assert signed_in_browser.sign_in() == "/"
    return signed_in_browser


def stored_rows(services: Services) -> Iterator[str]:
    """Yield every row of every table as text. Only the superuser sees the rows of all tenants."""
    with psycopg.connect(
        host=str(services.paths.sockets),
        dbname=DATABASE,
        user=SUPERUSER,
        password=read_password(services.paths, SUPERUSER),
    ) as superuser:
        tables = superuser.execute(
            "SELECT relname FROM pg_class"
            " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        ).fetchall()
        for (table,) in tables:
            statement = SQL("SELECT row::text FROM {} AS row").format(Identifier(table))
            yield from (text for (text,) in superuser.execute(statement))


def is_accepted_as_cookie(key: str) -> bool:
    """Return whether `key` is accepted as a session cookie."""
    client = fresh_client()
    client.cookies[COOKIE] = key
    return client.get("/api/v1/tenant").status_code == 200


def test_a_sessions_stored_key_cannot_be_used_as_its_cookie(
    browser: Browser, person: Person
) -> None:
    token = browser.client.cookies[COOKIE].value
    keys = set(
        UserSession.objects.filter(user_id=person.user_id).values_list("session_key", flat=True)
    )

    assert is_accepted_as_cookie(token)
    assert keys == {browser.client.session.session_key}
    assert not any(is_accepted_as_cookie(key) for key in keys)


def test_an_operator_sessions_stored_key_cannot_be_used_as_its_cookie() -> None:
    operators_browser = signed_in_operator()
    other_browser = new_operators_browser()
    other_browser.client.cookies[OPERATOR_SESSION_COOKIE] = str(
        operators_browser.session().session_key
    )

    assert (operators_browser.is_signed_in(), other_browser.is_signed_in()) == (True, False)


def test_the_data_of_a_session_are_sealed(hooli: Company) -> None:
    mailbox = Mailbox()
    send_invitation(hooli, "guest@hooli.example", mailbox=mailbox)
    client = fresh_client()
    client.get(f"/invitation/{mailbox.last_token}")

    key = client.session.session_key

    assert client.session["invitation"] == mailbox.last_token
    assert PlainStore(key).load() == {}


def test_the_data_of_one_session_cannot_be_used_in_another(browser: Browser) -> None:
    stranger = SessionStore()
    stranger.create()
    data = Session.objects.get(session_key=browser.client.session.session_key).session_data
    Session.objects.filter(session_key=stranger.session_key).update(session_data=data)

    assert SessionStore(stranger.session_key).load() == {}
    assert not is_accepted_as_cookie(stranger.token)


def test_no_table_contains_a_usable_secret(
    services: Services, hooli: Company, person: Person, browser: Browser
) -> None:
    mailbox = Mailbox()
    send_invitation(hooli, "guest@hooli.example", mailbox=mailbox)
    guest = fresh_client()
    guest.get(f"/invitation/{mailbox.last_token}")
    app_secret = browser.set_up_app()
    codes_file = browser.client.get("/account/recovery-codes/file").content.decode()
    recovery_codes = re.findall(r"^\d{8}$", codes_file, re.MULTILINE)
    secrets = {
        "session": browser.client.cookies[COOKIE].value,
        "operator's session": signed_in_operator().client.cookies[OPERATOR_SESSION_COOKIE].value,
        "invitation": mailbox.last_token,
        "SCIM token": create_scim_token(actor=hooli.platform, name="Okta", now=timezone.now()).text,
        "API key": make_key(hooli, person).text,
        "second factor": app_secret,
    }

    text = "\n".join(stored_rows(services))

    assert "guest@hooli.example" in text, "a tenant's rows were not read"
    assert all(secrets.values())
    assert {name for name, secret in secrets.items() if secret in text} == set()
    # The eight digits of one code can be part of a digest by chance.
    assert len(recovery_codes) == 10
    assert sum(code in text for code in recovery_codes) <= 1
