"""API keys are created and rotated with the console's forms."""

import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from caret.contracts.api_key import KEY_PATTERN, KeyKind, ParsedKey, parse_key
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.identity.api_keys.queries import find_key, is_key_active
from tenants.identity.api_keys.scopes import KeyScope
from tenants.models import ApiKey
from tenants.policy.document import serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.queries import find_policy_in_force
from tests.fixtures.companies import GLOBEX_PEOPLE, Cast, Company, make_company, make_key
from tests.integration.console.conftest import SignIn


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


@pytest.fixture
def client(company: Company, sign_in_with_step_up: SignIn) -> Client:
    """Return the administrator's browser."""
    return sign_in_with_step_up(company.administrator)


def list_page(client: Client, **query: str) -> str:
    return client.get("/keys", query).content.decode()


def filled_form(client: Client, company: Company, path: str = "/keys/new", **changes: Any) -> Any:
    """Return the fields of the form at this path, with a new form token.

    A change to None omits the field.
    """
    match = re.search(rb'name="form_token" value="([^"]+)"', client.get(path).content)
    assert match is not None
    form = {
        "form_token": match[1].decode(),
        "name": "Ada's laptop",
        "kind": "live",
        "owner": company.developer.email,
        "lifetime": "90",
        "modes": ["inference"],
        **changes,
    }
    return {name: value for name, value in form.items() if value is not None}


def parse_shown_key(page: Any) -> ParsedKey:
    match = KEY_PATTERN.search(page.content.decode())
    assert match is not None
    key = parse_key(match[0])
    assert key is not None
    return key


def keys_of(company: Company) -> list[ApiKey]:
    with tenant_scope(company.tenant_id):
        return list(ApiKey.objects.filter(tenant_id=company.tenant_id).order_by("created_at"))


def limit_lifetime(company: Company, days: int) -> None:
    policy = serialize_policy(find_policy_in_force(tenant_id=company.tenant_id).policy)
    set_policy(
        actor=company.platform,
        document=policy | {"max_key_lifetime_days": days},
        reason="Short lifetimes",
        now=timezone.now(),
    )


def test_a_new_key_is_shown_once_and_works(company: Company, client: Client) -> None:
    page = client.post("/keys/new", filled_form(client, company))

    key = parse_shown_key(page)
    assert is_key_active(tenant_id=company.tenant_id, key=key, now=timezone.now())
    assert page["Cache-Control"] == "no-store"
    assert "config.yaml" in page.content.decode()  # settings of an editor
    assert key.text not in list_page(client)
    assert keys_of(company)[0].owner_id == uuid.UUID(company.developer.user_id)


@pytest.mark.parametrize(
    ("preset", "scopes", "shown_editor", "hidden_editor"),
    [
        ("code", ["inference:edit", "inference:fim", "inference:inline"], "Tabby", "Chat, curl"),
        ("chat", ["inference:chat"], "Chat, curl", "Tabby"),
        ("all", ["inference"], "Chat, curl", None),
    ],
)
def test_a_preset_decides_the_scopes_and_the_settings_that_are_shown(
    company: Company,
    client: Client,
    preset: str,
    scopes: list[str],
    shown_editor: str,
    hidden_editor: str | None,
) -> None:
    page = client.post("/keys/new", filled_form(client, company, preset=preset))

    content = page.content.decode()
    assert keys_of(company)[0].scopes == scopes
    assert shown_editor in content
    assert hidden_editor is None or hidden_editor not in content


def test_only_a_service_key_can_have_no_completion_scopes(company: Company, client: Client) -> None:
    form = filled_form(client, company, preset="none", scopes=["usage:read"])

    refused = client.post("/keys/new", form)
    form = filled_form(client, company, preset="none", scopes=["usage:read"], kind="svc")
    page = client.post("/keys/new", form)

    assert refused.status_code == 400
    assert [key.scopes for key in keys_of(company)] == [["usage:read"]]
    assert "Test this key" not in page.content.decode()


def test_a_service_key_has_no_owner_and_the_chosen_scopes(company: Company, client: Client) -> None:
    form = filled_form(
        client,
        company,
        kind="svc",
        modes=[],
        scopes=["usage:read"],
        networks="192.0.2.0/24\n198.51.100.7",
        lifetime="never",
    )

    page = client.post("/keys/new", form)

    key = find_key(
        actor=company.administrator.actor,
        lookup_id=parse_shown_key(page).lookup_id,
        now=timezone.now(),
    )
    assert (key.kind, key.owner_id, key.expires_at) == (KeyKind.SERVICE, None, None)
    assert key.scopes == {KeyScope.USAGE_READ}
    assert key.networks == ("192.0.2.0/24", "198.51.100.7/32")
    assert "config.yaml" not in page.content.decode()


def test_a_key_expires_at_midnight_of_the_users_time_zone(company: Company, client: Client) -> None:
    client.cookies["caret-zone"] = "Asia/Kolkata"
    day = (timezone.now() + timedelta(days=5)).date()

    client.post("/keys/new", filled_form(client, company, lifetime="day", day=day.isoformat()))

    expires_at = keys_of(company)[0].expires_at
    assert expires_at is not None
    # The next midnight in India, which is five and a half hours ahead of UTC.
    assert expires_at.strftime("%Y-%m-%d %H:%M") == f"{day} 18:30"


def test_submitting_the_form_again_creates_no_second_key(company: Company, client: Client) -> None:
    form = filled_form(client, company)
    client.post("/keys/new", form)

    again = client.post("/keys/new", form, follow=True)

    assert "We did not create a second key" in again.content.decode()
    assert len(keys_of(company)) == 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "a\x07b"}, "name"),
        ({"kind": "gold"}, "kind"),
        ({"kind": None}, "kind"),
        ({"lifetime": "9999"}, "lifetime"),
        ({"lifetime": "day"}, "day"),
        ({"lifetime": "day", "day": "9999-12-31"}, "day"),  # refused by the form
        ({"lifetime": "day", "day": "0001-01-01"}, "lifetime"),  # in the past: refused on creation
        ({"lifetime": "day", "day": "2020-01-01"}, "lifetime"),
        ({"owner": "not an address"}, "owner"),
        ({"owner": "nobody@nowhere.example"}, "owner"),
        ({"owner": ""}, "owner"),
        ({"modes": []}, "modes"),
        ({"modes": ["usage:read"]}, "modes"),
        ({"networks": "192.0.2.7/24"}, "networks"),  # with host bits
    ],
)
def test_an_invalid_form_is_shown_again_with_an_error_at_the_field(
    company: Company, client: Client, changes: dict[str, Any], field: str
) -> None:
    page = client.post("/keys/new", filled_form(client, company, **changes))

    text = page.content.decode()
    assert page.status_code == 400
    assert 'class="wrong"' in text
    assert page.context["form"].has_error(field)
    if "name" not in changes:
        assert 'value="Ada&#x27;s laptop"' in text
    assert keys_of(company) == []


def test_a_member_of_another_tenant_cannot_own_a_key(
    company: Company, cast: Cast, client: Client
) -> None:
    page = client.post("/keys/new", filled_form(client, company, owner=cast.acme.developer.email))

    assert page.status_code == 400


def test_the_form_offers_only_lifetimes_that_the_policy_allows(
    company: Company, client: Client
) -> None:
    limit_lifetime(company, 45)

    page = client.get("/keys/new").content.decode()
    refused = client.post("/keys/new", filled_form(client, company, lifetime="90"))

    assert re.findall(r'<option value="(\w+)"', page) == ["1", "7", "30", "45", "day"]
    assert refused.status_code == 400


def test_a_keys_name_is_escaped(company: Company, client: Client) -> None:
    client.post("/keys/new", filled_form(client, company, name="<script>alert(1)</script>"))

    page = list_page(client)

    assert "<script>alert" not in page
    assert "&lt;script&gt;" in page


def test_rotation_creates_a_new_secret_and_expires_the_old_one_after_the_overlap(
    company: Company, client: Client
) -> None:
    created = make_key(company, company.developer)
    old = parse_key(created.text)
    assert old is not None
    path = f"/keys/{old.lookup_id}/rotate"

    page = client.post(path, filled_form(client, company, path, lifetime="keep", overlap="1"))

    now = timezone.now()
    assert parse_shown_key(page).text != created.text
    assert is_key_active(tenant_id=company.tenant_id, key=parse_shown_key(page), now=now)
    assert is_key_active(tenant_id=company.tenant_id, key=old, now=now)
    assert not is_key_active(tenant_id=company.tenant_id, key=old, now=now + timedelta(hours=2))
    assert "Valid until" in client.get(f"/keys/{old.lookup_id}").content.decode()


# An overlap of 9 hours is not offered.
@pytest.mark.parametrize("changes", [{"overlap": "9"}, {"lifetime": "never"}, {"reason": "x\0"}])
def test_an_invalid_rotation_changes_nothing(
    company: Company, client: Client, changes: dict[str, str]
) -> None:
    old = parse_key(make_key(company, company.developer).text)
    assert old is not None
    path = f"/keys/{old.lookup_id}/rotate"
    form = {"lifetime": "keep", "overlap": "0"} | changes

    page = client.post(path, filled_form(client, company, path, **form))

    assert page.status_code == 400
    assert is_key_active(tenant_id=company.tenant_id, key=old, now=timezone.now())


def test_a_revoked_key_cannot_be_rotated(company: Company, client: Client) -> None:
    lookup_id = make_key(company, company.developer).key.lookup_id
    client.post(f"/keys/{lookup_id}/revoke")

    answer = client.get(f"/keys/{lookup_id}/rotate", follow=True)

    last_url, _status = answer.redirect_chain[-1]
    assert last_url == f"/keys/{lookup_id}"
    assert "You can rotate only active keys" in answer.content.decode()
