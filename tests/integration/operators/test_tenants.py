"""Operators' view of a tenant, their changes, and the entries in the tenant's audit log."""

from datetime import timedelta

import pytest
from django.utils import timezone

from caret.contracts.policy import PolicyLimits, RateLimit
from caret.contracts.snapshot import SNAPSHOTS, TenantSnapshot, TenantStatus, decode_snapshot
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from console.operator_admin.session import ACCESS_REASON_S
from tenants.base import redis_connection
from tenants.base.errors import Forbidden
from tenants.base.money import Currency
from tenants.base.operator_roles import OperatorRole
from tenants.base.permissions import Permission, Role
from tenants.billing.plans.operations import create_plan
from tenants.identity.members.tenant_status import set_status
from tenants.models import AuditEntry, Subscription, Tenant, User
from tenants.security.authorization.actor import Actor, OperatorIdentity
from tests.fakes.console_client import Client
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, Company, make_company, make_key
from tests.integration.operators.browsers import (
    CHANGE_REASON,
    VIEW_REASON,
    Browser,
    signed_in,
    with_recent_step_up,
)

SECRET_NAME = "Laptop of Ada, secret project"


@pytest.fixture
def acme() -> Company:
    return make_company("acme", ACME_PEOPLE, is_published=True)


@pytest.fixture
def globex() -> Company:
    return make_company("globex", GLOBEX_PEOPLE, is_published=True)


def entries(company: Company, action: str) -> list[AuditEntry]:
    with tenant_scope(company.tenant_id):
        return list(AuditEntry.objects.filter(action=action).order_by("sequence"))


def read_published(company: Company) -> TenantSnapshot:
    data = redis_connection.connect_to_redis().hget(SNAPSHOTS, company.tenant_id)
    assert isinstance(data, bytes)
    return decode_snapshot(data)


def make_operator_actor() -> Actor:
    """Return an operator with the owner's role, from which an operator gets no permissions."""
    operator = OperatorIdentity("ola", can_change=True)
    return Actor(
        tenant_id=TenantId("t"),
        user_id=None,
        role=Role.OWNER,
        address=None,
        request_id="",
        operator=operator,
    )


def test_a_tenant_is_shown_only_after_a_reason_is_given(acme: Company) -> None:
    browser = signed_in()
    key = make_key(acme, acme.developer)

    page = browser.page(acme)
    blank = browser.open_tenant(acme, "  ")

    assert "Why do you need to see this tenant?" in page.content.decode()
    assert key.key.lookup_id not in page.content.decode()
    assert blank.status_code == 400
    assert entries(acme, "operator.looked") == []


def test_each_view_of_a_tenant_is_in_its_audit_log(acme: Company, globex: Company) -> None:
    browser = signed_in()

    browser.open_tenant(acme)
    browser.page(acme)

    view_entries = entries(acme, "operator.looked")
    assert [entry.reason for entry in view_entries] == [VIEW_REASON, VIEW_REASON]
    first = view_entries[0]
    assert (first.actor_kind, first.actor_id) == ("operator", None)
    assert first.actor_key.startswith("operator:ola")
    assert first.address is not None
    assert first.address.startswith("10.")  # as of all addresses of new_browser
    assert len(first.request_id) == 36  # a UUID
    assert entries(globex, "operator.looked") == []


def test_the_tenants_auditor_can_read_which_operator_viewed_it(acme: Company) -> None:
    signed_in().open_tenant(acme)
    client = Client()
    client.force_login(User.objects.get(id=acme.people[Role.AUDITOR].user_id))

    views = client.get("/api/v1/audit", {"action": "operator.looked"}).json()["items"]
    by_actor = client.get("/api/v1/audit", {"actor": views[0]["actor_key"]}).json()["items"]

    assert [(row["actor_kind"], row["reason"]) for row in views] == [("operator", VIEW_REASON)]
    assert by_actor == views


def test_a_reason_applies_to_one_tenant(acme: Company, globex: Company) -> None:
    browser = signed_in()
    browser.open_tenant(acme)
    browser.step_up()  # does not replace the reason

    page = browser.page(globex)

    assert "Why do you need to see this tenant?" in page.content.decode()


def test_a_reason_expires_after_an_hour(acme: Company) -> None:
    browser = signed_in()
    browser.open_tenant(acme)
    browser.step_up()
    stored_session = browser.session()
    reason, until = stored_session["access_reasons"][acme.tenant_id]

    stored_session["access_reasons"] = {acme.tenant_id: [reason, until - ACCESS_REASON_S]}
    stored_session.save()
    page = browser.page(acme)
    change = browser.change(acme, "status", status="suspended")

    assert "Why do you need to see this tenant?" in page.content.decode()
    assert "Why do you need to see this tenant?" in change.content.decode()
    assert Tenant.objects.get(id=acme.tenant_id).status == TenantStatus.ACTIVE


def test_keys_are_shown_only_by_their_lookup_ids(acme: Company, globex: Company) -> None:
    key = make_key(acme, acme.developer, name=SECRET_NAME)
    foreign_key = make_key(globex, globex.developer)

    text = signed_in().open_tenant(acme).content.decode()

    assert key.key.lookup_id in text
    for hidden in (SECRET_NAME, key.text, acme.developer.email, foreign_key.key.lookup_id):
        assert hidden not in text


@pytest.mark.parametrize("permission", list(Permission))
def test_an_operator_has_no_permission_of_a_tenants_role(permission: Permission) -> None:
    actor = make_operator_actor()

    assert not actor.has_permission(permission)
    with pytest.raises(Forbidden):
        actor.require(permission)


def test_an_operator_may_not_act_as_the_platform() -> None:
    actor = make_operator_actor()

    actor.require_operator()
    with pytest.raises(Forbidden):
        actor.require_platform()


CHANGES: list[tuple[str, dict[str, str]]] = [
    ("status", {"status": "suspended"}),
    ("name", {"name": "Renamed"}),
    ("limits", {"max_concurrent_completions": "5", "max_requests_per_minute": "600"}),
    ("region", {"region": "eu-north"}),
    ("plan", {"plan": "none-such", "starts_on": "2099-01-01"}),
    ("trial", {"trial_ends_on": "2099-01-01"}),
    ("owner", {"email": "ada@acme.example"}),
]


@pytest.mark.parametrize(("section", "form"), CHANGES)
def test_the_support_role_views_tenants_but_cannot_change_them(
    acme: Company, section: str, form: dict[str, str]
) -> None:
    browser = signed_in(OperatorRole.SUPPORT)
    page = browser.open_tenant(acme).content.decode()
    before = Tenant.objects.values().get(id=acme.tenant_id)

    response = browser.change(acme, section, **form)

    assert f"/edit/{section}" not in page
    assert response.status_code == 403
    assert Tenant.objects.values().get(id=acme.tenant_id) == before


@pytest.mark.parametrize(("section", "form"), CHANGES)
def test_a_tenants_owner_cannot_make_an_operators_change(
    acme: Company, section: str, form: dict[str, str]
) -> None:
    client = Client()
    client.force_login(User.objects.get(id=acme.people[Role.OWNER].user_id))
    before = Tenant.objects.values().get(id=acme.tenant_id)

    response = Browser(client).change(acme, section, **form)

    assert response.status_code == 302
    assert response["Location"].startswith("/operators/sign-in")
    assert Tenant.objects.values().get(id=acme.tenant_id) == before


@pytest.mark.parametrize(("section", "form"), CHANGES)
def test_a_change_requires_a_reason(acme: Company, section: str, form: dict[str, str]) -> None:
    browser = signed_in()
    browser.open_tenant(acme)
    browser.step_up()

    response = browser.change(acme, section, **form, reason=" ")

    assert response.status_code == 400
    assert "Enter a reason" in response.content.decode()


def test_limits_set_by_an_operator_are_published_and_audited(
    acme: Company, globex: Company
) -> None:
    browser = signed_in()
    browser.open_tenant(acme)
    browser.step_up()

    response = browser.change(acme, "limits", **dict(CHANGES)["limits"])

    assert response["Location"].endswith("?done=limits")
    policy = read_published(acme).policy
    assert policy.max_concurrent_completions == 5
    assert policy.limits.tenant == RateLimit(per_minute=600, burst=600)
    assert read_published(globex).policy.max_concurrent_completions > 5
    (entry,) = entries(acme, "tenant.limits_changed")
    assert entry.reason == CHANGE_REASON
    assert entry.before == {"max_concurrent_completions": None, "max_requests_per_minute": None}
    assert entry.after == {"max_concurrent_completions": 5, "max_requests_per_minute": 600}


def test_an_empty_value_removes_a_limit(acme: Company) -> None:
    browser = signed_in()
    browser.open_tenant(acme)
    browser.step_up()
    policy_without_limits = read_published(acme).policy
    browser.change(acme, "limits", **dict(CHANGES)["limits"])

    browser.change(acme, "limits", max_concurrent_completions="", max_requests_per_minute="")

    assert read_published(acme).policy == policy_without_limits
    assert read_published(acme).policy.limits.tenant == PolicyLimits().tenant


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many", "9" * 9, "9" * 40])
def test_an_invalid_limit_is_refused(acme: Company, text: str) -> None:
    browser = signed_in()
    browser.open_tenant(acme)
    browser.step_up()

    response = browser.change(acme, "limits", max_concurrent_completions=text)

    assert response.status_code == 400
    assert Tenant.objects.get(id=acme.tenant_id).max_concurrent_completions is None


def test_an_operator_suspends_and_reactivates_a_tenant(acme: Company) -> None:
    browser = signed_in()
    browser.open_tenant(acme)
    browser.step_up()

    browser.change(acme, "status", status="suspended")
    suspended = read_published(acme).status
    browser.change(acme, "status", status="active")

    assert (suspended, read_published(acme).status) == (TenantStatus.SUSPENDED, TenantStatus.ACTIVE)
    assert len(entries(acme, "tenant.status_changed")) == 2


def test_an_operator_closes_a_tenant_step_by_step(acme: Company) -> None:
    browser = with_recent_step_up()
    browser.open_tenant(acme)

    for status in ("suspended", "closing", "suspended", "closing", "active", "closing"):
        assert browser.change(acme, "status", status=status, grace_days="14").status_code == 302
    page = browser.page(acme).content.decode()
    without_slug = browser.change(acme, "status", status="closed")
    row = Tenant.objects.get(id=acme.tenant_id)
    closed = browser.change(acme, "status", status="closed", slug=acme.slug)

    assert f"{row.closes_at:%Y-%m-%d}" in page
    assert "Owners can download it in the console" in page
    assert (without_slug.status_code, row.status) == (400, TenantStatus.CLOSING)
    assert f"enter its slug: {acme.slug}" in without_slug.content.decode()
    assert closed.status_code == 302
    assert Tenant.objects.get(id=acme.tenant_id).status == TenantStatus.CLOSED
    assert len(entries(acme, "tenant.status_changed")) == 7  # the six of the loop, and `closed`
    assert b'name="status"' not in browser.page(acme).content  # no form for a further change


@pytest.mark.parametrize("status", ["active", "closed", "gone"])
def test_an_invalid_change_of_the_status_is_refused(acme: Company, status: str) -> None:
    browser = with_recent_step_up()
    browser.open_tenant(acme)

    response = browser.change(acme, "status", status=status, slug=acme.slug)

    assert response.status_code == 400
    assert Tenant.objects.get(id=acme.tenant_id).status == TenantStatus.ACTIVE


def test_an_operator_changes_the_region(acme: Company) -> None:
    browser = signed_in()
    browser.open_tenant(acme)
    browser.step_up()

    invalid_region = browser.change(acme, "region", region="EU North")
    valid_region = browser.change(acme, "region", region="eu-north")

    assert (invalid_region.status_code, valid_region.status_code) == (400, 302)
    (entry,) = entries(acme, "tenant.region_changed")
    assert (entry.before, entry.after) == ({"region": "local"}, {"region": "eu-north"})


def test_an_operator_changes_the_plan(acme: Company) -> None:
    plan, now = f"team-{acme.slug[-8:]}", timezone.now()
    create_plan(slug=plan, name="Team", currency=Currency.EUR, now=now)
    browser = signed_in()
    browser.open_tenant(acme)
    browser.step_up()
    starts_on = (now + timedelta(days=2)).date()

    response = browser.change(acme, "plan", plan=plan, starts_on=starts_on.isoformat())

    assert response.status_code == 302
    (entry,) = entries(acme, "billing.subscribed")
    assert (entry.reason, entry.actor_kind) == (CHANGE_REASON, "operator")
    with tenant_scope(acme.tenant_id):
        assert Subscription.objects.get().starts_on == starts_on


@pytest.mark.parametrize(
    "form", [{"plan": "x", "starts_on": "soon"}, {"plan": "a\0", "starts_on": "2099-01-01"}, {}]
)
def test_an_invalid_plan_is_rejected(acme: Company, form: dict[str, str]) -> None:
    browser = signed_in()
    browser.open_tenant(acme)
    browser.step_up()

    assert browser.change(acme, "plan", **form).status_code == 400


@pytest.mark.parametrize(
    "address",
    [
        "tenants/00000000-0000-0000-0000-000000000000",
        "tenants/x",
        "assets/0/css/styles.css",
        # Pages of Django's admin, which the operators' site does not have.
        "tenants/tenant/",
        "jsi18n/",
        "search/",
        "password_change/",
        "autocomplete/",
    ],
)
def test_unknown_pages_are_not_found(address: str) -> None:
    client = signed_in().client

    assert client.get(f"/operators/{address}").status_code == 404


def test_an_unknown_change_of_a_tenant_is_not_found(acme: Company) -> None:
    browser = signed_in()
    browser.open_tenant(acme)
    browser.step_up()

    response = browser.change(acme, "slug", slug="globex")

    assert response.status_code == 404


def test_the_operation_that_sets_the_status_refuses_the_support_role(acme: Company) -> None:
    actor = Actor(
        tenant_id=acme.tenant_id,
        user_id=None,
        role=Role.AUDITOR,
        address=None,
        request_id="",
        operator=OperatorIdentity("ola", can_change=False),
    )

    with pytest.raises(Forbidden):
        set_status(actor=actor, status=TenantStatus.SUSPENDED, reason="x", now=timezone.now())
