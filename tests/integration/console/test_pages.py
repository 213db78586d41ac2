"""The pages, as each role and the neighbour see them."""

import re
import secrets
import uuid

import pytest
from django.test import Client
from django.utils import timezone

from caret.contracts.credential import KEY_PATTERN, parse_key
from caret.foundation.postgres.tenancy import tenant
from console.assets import asset_url
from tenants.keys.queries import holds
from tenants.members.actor import platform_actor
from tenants.members.operations import add_member, create_tenant
from tenants.members.permissions import Role
from tenants.models import ApiKey, AuditEntry, UsageRecord, User
from tests.cast import GLOBEX, Cast, Company, make_company, make_key
from tests.integration.console.conftest import SignIn

# Scripts are files of ours, or data.
_NOT_ALLOWED = (
    r"<script(?! src=\"/assets/|[^>]* type=\"application/json\")|<style| style=| on\w+="
    r"|https?://(?!127\.0\.0\.1)"
)
PAGES = ["/", "/keys/new", "/sign-in", "/nothing"]


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX)


def form_token(page: bytes) -> str:
    found = re.search(rb'name="form_token" value="([^"]+)"', page)
    assert found is not None
    return found[1].decode()


def fill_new_key(client: Client, company: Company, **changes: str) -> dict[str, str]:
    return {
        "form_token": form_token(client.get("/keys/new").content),
        "name": "Ada's laptop",
        "kind": "live",
        "owner": company.developer.user_id,
        "lifetime": "90",
        **changes,
    }


@pytest.mark.parametrize("path", ["/", "/keys/new", "/keys/Ab3dE6gH/revoke"])
def test_a_stranger_is_sent_to_the_sign_in(path: str) -> None:
    response = Client().get(path)

    assert response.status_code == 302
    assert response["Location"] == f"/sign-in?next={path}"


@pytest.mark.parametrize(
    ("role", "keys", "new_key", "policy"),
    [
        (Role.OWNER, True, True, True),
        (Role.ADMINISTRATOR, True, True, True),
        (Role.BILLING, False, False, False),
        (Role.AUDITOR, True, False, True),
        (Role.DEVELOPER, True, False, True),
    ],
)
def test_the_overview_shows_what_the_role_may_see(
    cast: Cast, sign_in: SignIn, role: Role, keys: bool, new_key: bool, policy: bool
) -> None:
    page = sign_in(cast.acme.people[role]).get("/").content.decode()

    assert ("API keys</h2>" in page) == keys
    assert ('href="/keys/new"' in page) == new_key
    assert ("Policy in force" in page) == policy
    assert "Last 24 hours" in page


def test_the_overview_says_how_to_reach_the_gateway(cast: Cast, sign_in: SignIn) -> None:
    page = sign_in(cast.acme.developer).get("/").content.decode()

    assert "curl http://127.0.0.1:8401/v1/completions" in page


def test_without_usage_the_overview_says_so(company: Company, sign_in: SignIn) -> None:
    page = sign_in(company.administrator).get("/").content.decode()

    assert "No requests yet" in page
    assert "No keys yet" in page


def test_with_usage_the_overview_counts_it(company: Company, sign_in: SignIn) -> None:
    with tenant(company.tenant_id):
        UsageRecord.objects.create(
            tenant_id=company.tenant_id,
            occurred_at=timezone.now(),
            request_id=uuid.uuid4(),
            key_id=uuid.uuid4(),
            protocol="stream",
            mode="inline",
            language="python",
            tier="fast",
            pool="fast",
            replica="fast-0",
            finish="stop",
            error_code="",
            prompt_tokens=200,
            cached_tokens=150,
            generated_tokens=4,
            first_token_ms=41.7,
            total_ms=100.0,
        )

    page = sign_in(company.administrator).get("/").content.decode()

    assert "42 <small>ms</small>" in page
    assert "75 <small>%</small>" in page


def test_a_developer_sees_his_own_keys_only(company: Company, sign_in: SignIn) -> None:
    own = make_key(company, company.developer).key.lookup_id
    other = make_key(company, company.administrator).key.lookup_id

    page = sign_in(company.developer).get("/").content.decode()

    assert own in page
    assert other not in page


def test_the_neighbour_sees_none_of_our_keys(company: Company, cast: Cast, sign_in: SignIn) -> None:
    lookup_id = make_key(company, company.developer).key.lookup_id

    page = sign_in(cast.globex.administrator).get("/").content.decode()

    assert lookup_id not in page
    assert company.slug not in page


def test_a_new_key_is_shown_once_and_works(company: Company, sign_in: SignIn) -> None:
    client = sign_in(company.administrator)

    page = client.post("/keys/new", fill_new_key(client, company))

    text = KEY_PATTERN.search(page.content.decode())
    assert text is not None
    key = parse_key(text[0])
    assert key is not None
    assert holds(tenant_id=company.tenant_id, key=key, now=timezone.now())
    assert page["Cache-Control"] == "no-store"
    assert text[0] not in client.get("/").content.decode()


def test_sending_the_form_again_makes_no_second_key(company: Company, sign_in: SignIn) -> None:
    client = sign_in(company.administrator)
    form = fill_new_key(client, company)
    client.post("/keys/new", form)

    again = client.post("/keys/new", form, follow=True)

    assert "No second key was made" in again.content.decode()
    with tenant(company.tenant_id):
        assert ApiKey.objects.count() == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"name": " "},
        {"kind": "gold"},
        {"kind": ""},
        {"lifetime": "9999"},
        {"owner": "not an id"},
        {"owner": str(uuid.uuid4())},
    ],
)
def test_a_wrong_form_is_shown_again_with_what_is_wrong(
    company: Company, sign_in: SignIn, changes: dict[str, str]
) -> None:
    client = sign_in(company.administrator)

    page = client.post("/keys/new", fill_new_key(client, company, **changes))

    assert page.status_code == 400
    assert 'role="alert"' in page.content.decode()
    with tenant(company.tenant_id):
        assert ApiKey.objects.count() == 0


def test_a_neighbour_cannot_be_made_the_owner(
    company: Company, cast: Cast, sign_in: SignIn
) -> None:
    client = sign_in(company.administrator)

    page = client.post(
        "/keys/new", fill_new_key(client, company, owner=cast.acme.developer.user_id)
    )

    assert page.status_code == 400


def test_what_people_write_is_escaped(company: Company, sign_in: SignIn) -> None:
    client = sign_in(company.administrator)

    client.post("/keys/new", fill_new_key(client, company, name="<script>alert(1)</script>"))

    page = client.get("/").content.decode()
    assert "<script" not in page
    assert "&lt;script&gt;" in page


def test_revoking_asks_first_then_revokes_with_the_reason(
    company: Company, sign_in: SignIn
) -> None:
    lookup_id = make_key(company, company.developer).key.lookup_id
    client = sign_in(company.administrator)

    asked = client.get(f"/keys/{lookup_id}/revoke").content.decode()
    done = client.post(f"/keys/{lookup_id}/revoke", {"reason": "lost"}, follow=True)

    assert "Revoke Laptop?" in asked
    assert "Laptop is revoked" in done.content.decode()
    with tenant(company.tenant_id):
        assert ApiKey.objects.get(lookup_id=lookup_id).revoked_at is not None
        entry = AuditEntry.objects.get(action="key.revoked")
    assert (entry.reason, entry.address) == ("lost", "127.0.0.1")


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_neighbours_key_is_not_found(
    company: Company, cast: Cast, sign_in: SignIn, method: str
) -> None:
    lookup_id = make_key(company, company.developer).key.lookup_id
    client = sign_in(cast.globex.administrator)

    theirs = getattr(client, method)(f"/keys/{lookup_id}/revoke")
    nobodys = getattr(client, method)("/keys/nothing1/revoke")

    assert theirs.status_code == nobodys.status_code == 404
    assert theirs.content == nobodys.content


@pytest.mark.parametrize("role", [Role.BILLING, Role.AUDITOR, Role.DEVELOPER])
@pytest.mark.parametrize("path", ["/keys/new", "/keys/Ab3dE6gH/revoke"])
def test_a_role_that_may_not_change_keys_gets_no_form(
    cast: Cast, sign_in: SignIn, role: Role, path: str
) -> None:
    client = sign_in(cast.acme.people[role])

    assert client.get(path).status_code == 403
    assert client.post(path).status_code == 403


@pytest.fixture
def both(company: Company) -> Company:
    """A second company in which the first one's administrator is an auditor."""
    now = timezone.now()
    tenant_id = create_tenant(slug=f"hooli-{secrets.token_hex(4)}", name="Hooli", now=now)
    add_member(
        actor=platform_actor(tenant_id),
        user_id=company.administrator.user_id,
        role=Role.AUDITOR,
        now=now,
    )
    return Company(tenant_id=tenant_id, slug="hooli", name="Hooli", people={})


def test_a_user_of_two_tenants_switches(company: Company, both: Company, sign_in: SignIn) -> None:
    client = sign_in(company.administrator)

    client.post("/tenant", {"tenant": company.tenant_id})
    first = client.get("/").content.decode()
    client.post("/tenant", {"tenant": both.tenant_id})
    second = client.get("/").content.decode()

    assert "<h1>Initech</h1>" in first
    assert "<h1>Hooli</h1>" in second
    assert 'href="/keys/new"' in first
    assert 'href="/keys/new"' not in second


@pytest.mark.parametrize("wanted", ["", "x", "00000000-0000-0000-0000-000000000000", None])
def test_nobody_switches_to_a_tenant_that_is_not_his(
    company: Company, cast: Cast, sign_in: SignIn, wanted: str | None
) -> None:
    client = sign_in(company.administrator)

    response = client.post("/tenant", {"tenant": cast.acme.tenant_id if wanted is None else wanted})

    assert response.status_code == 404
    assert "<h1>Initech</h1>" in client.get("/").content.decode()


def test_who_was_switched_off_is_out_at_once(company: Company, sign_in: SignIn) -> None:
    client = sign_in(company.developer)
    assert client.get("/").status_code == 200

    User.objects.filter(id=company.developer.user_id).update(is_active=False)

    assert client.get("/").status_code == 302


@pytest.mark.parametrize("path", PAGES)
def test_pages_allow_nothing_inline_and_nothing_from_elsewhere(
    cast: Cast, sign_in: SignIn, path: str
) -> None:
    response = sign_in(cast.acme.administrator).get(path, follow=True)

    page, policy = response.content.decode(), response["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert re.search(_NOT_ALLOWED, page) is None
    assert response["X-Frame-Options"] == "DENY"
    assert response["Cache-Control"] == "no-store"


def test_an_asset_is_kept_for_ever_under_the_name_of_its_content() -> None:
    response = Client().get(asset_url("console.css"))

    assert response.status_code == 200
    assert response["Content-Type"].startswith("text/css")
    assert "immutable" in response["Cache-Control"]


@pytest.mark.parametrize(
    "path", ["/assets/0000/console.css", "/assets/x/../../apps.py", "/assets/x/nothing"]
)
def test_what_is_no_asset_is_not_found(path: str) -> None:
    assert Client().get(path).status_code == 404


def test_an_asset_that_does_not_exist_breaks_the_page_that_wants_it() -> None:
    with pytest.raises(KeyError):
        asset_url("missing.css")


def test_the_probe_needs_nobody() -> None:
    assert Client().get("/healthz").content == b"ok\n"
