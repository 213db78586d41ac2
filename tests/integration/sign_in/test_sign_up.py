"""Self-service sign-up: the form, its e-mail, and the tenant that the link creates."""

import re
import secrets
from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from django.core import mail
from django.db import OperationalError
from django.utils import timezone

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from console.limits.throttling import MAX_SIGN_UP_MAILS, MAX_TRIES
from tenants.base import redis_connection
from tenants.base.money import Currency
from tenants.base.permissions import Role
from tenants.billing.plans.operations import create_plan
from tenants.identity.members.operations import MAX_NAME_CHARS, create_tenant
from tenants.identity.sign_up import propose_slug
from tenants.models import Subscription, Tenant, User
from tenants.security.authorization.directory import list_members
from tests.fakes.console_client import Client
from tests.fixtures.companies import PASSWORD
from tests.integration.sign_in.by_provider import fresh_client
from tests.integration.sign_in.passwords import keep_mails_in_memory


@pytest.fixture(autouse=True)
def _sign_up_enabled(settings: LazySettings) -> None:
    """Enable sign-up without a plan, keep e-mails in memory, and reset the total limit."""
    keep_mails_in_memory(settings)
    settings.SELF_SIGN_UP, settings.SIGN_UP_PLAN = True, ""
    redis_connection.connect_to_redis().delete("caret:throttle:sign-up")


@pytest.fixture
def form() -> dict[str, str]:
    suffix = secrets.token_hex(4)
    return {"company": f"Piper {suffix}", "email": f"Richard@{suffix}.example", "slug": ""}


def submit_form(form: dict[str, str], client: Client | None = None) -> Any:
    return (client or fresh_client()).post("/sign-up", form)


def link_in_mail() -> str:
    match = re.search(r"/sign-up/\S+", str(mail.outbox[-1].body))
    assert match is not None
    return match[0]


def open_link(form: dict[str, str]) -> Client:
    """Return a browser that has opened the link of the e-mail."""
    assert submit_form(form)["Location"] == "/sign-up/sent"
    client = fresh_client()
    assert client.get(link_in_mail())["Location"] == "/sign-up/confirm"
    return client


def confirm_sign_up(client: Client, slug: str) -> Any:
    return client.post("/sign-up/confirm", {"slug": slug})


def test_a_company_signs_up_and_its_owner_sets_a_password(
    form: dict[str, str], settings: LazySettings
) -> None:
    settings.SIGN_UP_PLAN = plan = f"trial-{secrets.token_hex(4)}"
    create_plan(slug=plan, name="Trial", currency=Currency.EUR, now=timezone.now())
    slug = form["company"].lower().replace(" ", "-")
    client = open_link(form)

    page = client.get("/sign-up/confirm").content.decode()
    invitation = confirm_sign_up(client, slug)
    client.get(invitation["Location"])
    account = {"name": "Richard", "password": PASSWORD}
    welcome = client.post("/invitation", account, follow=True).content.decode()

    assert f'value="{slug}"' in page
    assert "Welcome!" in welcome
    tenant = Tenant.objects.get(slug=slug)
    assert tenant.name == form["company"]
    assert tenant.trial_ends_on == tenant.created_at.date() + timedelta(days=30)
    tenant_id = TenantId(str(tenant.id))
    with tenant_scope(tenant_id):
        assert Subscription.objects.get().plan.slug == plan
    (member,) = list_members(tenant_id=tenant_id)
    assert (member.email, member.role) == (form["email"].lower(), Role.OWNER)


def test_nothing_is_created_before_the_link_is_opened_and_confirmed(form: dict[str, str]) -> None:
    client = open_link(form)

    client.get("/sign-up/confirm")

    assert not Tenant.objects.filter(name=form["company"]).exists()


def test_a_link_works_once(form: dict[str, str]) -> None:
    client = open_link(form)
    link = link_in_mail()
    other_client = fresh_client()
    other_client.get(link)
    slug = propose_slug(form["company"])

    assert confirm_sign_up(client, slug).status_code == 302
    second_use = confirm_sign_up(other_client, f"{slug}-2")

    assert second_use.status_code == 404
    assert b"already used" in second_use.content
    assert fresh_client().get(link).status_code == 404
    assert Tenant.objects.filter(name=form["company"]).count() == 1


def test_a_link_expires_after_an_hour(form: dict[str, str]) -> None:
    submit_form(form)
    keys = list(redis_connection.connect_to_redis().scan_iter("caret:sign-up:*"))
    expiries_s = [redis_connection.connect_to_redis().ttl(key) for key in keys]

    assert keys
    assert all(0 < int(str(expiry_s)) <= 3600 for expiry_s in expiries_s)
    for key in keys:
        redis_connection.connect_to_redis().delete(key)
    assert fresh_client().get(link_in_mail()).status_code == 404


def test_a_slug_that_was_taken_meanwhile_can_be_replaced(form: dict[str, str]) -> None:
    slug = propose_slug(form["company"])
    client = open_link(form)
    create_tenant(slug=slug, name="Faster", now=timezone.now())

    refusal = confirm_sign_up(client, slug)
    accepted = confirm_sign_up(client, f"{slug}-ag")

    assert refusal.status_code == 400
    assert f"The slug {slug} is taken." in refusal.content.decode()
    assert accepted["Location"].startswith("/invitation/")


def test_a_database_error_leaves_the_link_valid(
    form: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise OperationalError("the server closed the connection unexpectedly")

    client, slug = open_link(form), propose_slug(form["company"])
    with monkeypatch.context() as context:
        context.setattr("tenants.identity.sign_up.onboard_tenant", fail)
        with pytest.raises(OperationalError):
            confirm_sign_up(client, slug)
    accepted = confirm_sign_up(client, slug)

    assert accepted["Location"].startswith("/invitation/")


def test_the_response_and_the_email_are_the_same_for_an_existing_account(
    form: dict[str, str],
) -> None:
    email = form["email"].lower()
    User.objects.create(email=email, name="Richard", password="!", created_at=timezone.now())

    existing = submit_form(form)
    new = submit_form(form | {"email": f"x{email}"})

    assert (existing.status_code, existing["Location"]) == (new.status_code, new["Location"])
    mail_to_existing, mail_to_new = mail.outbox
    assert (mail_to_existing.to, mail_to_new.to) == ([email], [f"x{email}"])
    assert re.sub(r"/sign-up/\S+", "", str(mail_to_existing.body)) == re.sub(
        r"/sign-up/\S+", "", str(mail_to_new.body)
    )


@pytest.mark.parametrize(
    ("slug", "message"),
    [
        ("admin", "The slug admin is reserved."),
        ("\u0430cme", "CYRILLIC SMALL LETTER A"),
        ("x" * 64, "at most 63 characters"),
        ("-acme", "Enter 1 to 63"),
        ("a\0b", "Null characters are not allowed."),
    ],
)
def test_an_invalid_slug_is_explained(form: dict[str, str], slug: str, message: str) -> None:
    response = submit_form(form | {"slug": slug})

    assert response.status_code == 400
    assert message in response.content.decode()
    assert mail.outbox == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("email", "nobody"), ("company", " \n "), ("company", "x" * (MAX_NAME_CHARS + 1))],
)
def test_another_invalid_field_is_refused(form: dict[str, str], field: str, value: str) -> None:
    assert submit_form(form | {field: value}).status_code == 400
    assert mail.outbox == []


@pytest.mark.parametrize(
    ("company", "slug"),
    [
        ("Müller & Söhne GmbH", "muller-sohne-gmbh"),
        ("3M", "m"),  # a slug begins with a letter
        ("株式会社", ""),
        ("Straße", "strasse"),
    ],
)
def test_a_slug_is_proposed_from_the_companys_name(company: str, slug: str) -> None:
    proposal = propose_slug(company)

    # A number follows if a tenant of another test has the slug.
    assert proposal == slug or re.fullmatch(rf"{slug}-\d+", proposal)


def test_a_reserved_or_long_name_still_gives_a_valid_proposal() -> None:
    assert propose_slug("Admin").startswith("admin-")
    assert len(propose_slug("x" * 200 + secrets.token_hex(4))) <= 63


def test_requests_for_one_address_and_from_one_network_are_throttled(form: dict[str, str]) -> None:
    statuses_for_one_address = [submit_form(form).status_code for _ in range(MAX_SIGN_UP_MAILS + 1)]
    client = fresh_client()
    responses_to_one_network = [
        submit_form(form | {"email": f"{n}@y.example"}, client) for n in range(MAX_TRIES + 1)
    ]

    assert statuses_for_one_address == [302] * MAX_SIGN_UP_MAILS + [429]
    statuses_of_one_network = [response.status_code for response in responses_to_one_network]
    assert statuses_of_one_network == [302] * MAX_TRIES + [429]
    assert int(responses_to_one_network[-1]["Retry-After"]) > 0


def test_all_requests_together_are_throttled(form: dict[str, str], settings: LazySettings) -> None:
    settings.MAX_SIGN_UPS_AN_HOUR = 2

    responses = [
        submit_form(form | {"email": f"{secrets.token_hex(4)}@y.example"}) for _ in range(3)
    ]

    assert [response.status_code for response in responses] == [302, 302, 429]


def test_a_mail_server_that_is_down_is_reported(
    form: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> int:
        raise ConnectionRefusedError

    monkeypatch.setattr("tenants.identity.sign_up.send_mail", refuse)

    response = submit_form(form)

    assert response.status_code == 409
    assert b"mail server" in response.content


def test_without_sign_up_there_is_no_page_and_no_link(
    form: dict[str, str], settings: LazySettings
) -> None:
    assert 'href="/sign-up"' in fresh_client().get("/sign-in").content.decode()
    settings.SELF_SIGN_UP = False

    for path in ("/sign-up", "/sign-up/sent", "/sign-up/confirm", "/sign-up/x"):
        assert fresh_client().get(path).status_code == 404
    assert submit_form(form).status_code == 404
    assert "sign-up" not in fresh_client().get("/sign-in").content.decode()
