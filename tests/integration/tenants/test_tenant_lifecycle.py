"""An operator creates a tenant with a tenant key and a plan, invites its owner, and renames it."""

import re
import secrets
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.utils import timezone

from caret.contracts.snapshot import TenantStatus
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.bearer_tokens import BearerTokenKind, parse_token
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.money import Currency
from tenants.base.permissions import Role
from tenants.billing.plans.operations import create_plan
from tenants.identity.invitations.operations import (
    InvitationBearer,
    accept_invitation,
    find_open_invitation,
)
from tenants.identity.tenant_lifecycle import (
    NewTenant,
    OnboardedTenant,
    invite_owner,
    onboard_tenant,
    rename_tenant,
)
from tenants.models import AuditEntry, Invitation, Subscription, Tenant, TenantKey
from tenants.security.authorization.actor import Actor, OperatorIdentity, build_system_actor
from tenants.security.authorization.directory import find_tenant, list_members
from tenants.security.encryption.errors import RootKeyUnavailable
from tests.fixtures.companies import ACME_PEOPLE, GLOBEX_PEOPLE, make_company
from tests.fixtures.users import make_stranger

REASON = ("--reason", "test")


@pytest.fixture
def slug() -> str:
    return f"initech-{secrets.token_hex(4)}"


@pytest.fixture
def plan() -> str:
    slug = f"plan-{secrets.token_hex(4)}"
    create_plan(slug=slug, name="Team", currency=Currency.EUR, now=timezone.now())
    return slug


def onboard(slug: str, **fields: Any) -> OnboardedTenant:
    new = NewTenant(
        **{"slug": slug, "name": "Initech", "owner_email": make_owner_email(slug)} | fields
    )
    return onboard_tenant(new=new, actor_for=build_system_actor, now=timezone.now())


def make_owner_email(slug: str) -> str:
    return f"olga@{slug}.example"


def run_tenant_command(*arguments: str) -> str:
    output = StringIO()
    call_command("tenant", *arguments, stdout=output)
    return output.getvalue()


def find_token(text: str) -> str:
    """Return the token of the invitation in the text."""
    match = re.search(r"civ_[\w=-]+", text)
    assert match is not None
    return match[0]


def list_actions(tenant_id: TenantId) -> list[str]:
    with tenant_scope(tenant_id):
        return list(AuditEntry.objects.order_by("sequence").values_list("action", flat=True))


def test_a_new_tenant_has_a_tenant_key_a_plan_and_an_invited_owner(slug: str, plan: str) -> None:
    onboarded = onboard(slug, plan=plan, region="eu-north")

    row = Tenant.objects.get(slug=slug)
    assert (row.name, row.region, row.status) == ("Initech", "eu-north", TenantStatus.ACTIVE)
    with tenant_scope(onboarded.tenant_id):
        assert TenantKey.objects.get().retired_at is None
        assert Subscription.objects.select_related("plan").get().plan.slug == plan
        assert Invitation.objects.get().role == Role.OWNER
    assert list_actions(onboarded.tenant_id) == [
        "tenant.created",
        "billing.subscribed",
        "invitation.created",
    ]


def test_the_invitation_link_is_mailed_and_makes_its_user_an_owner(slug: str) -> None:
    onboarded = onboard(slug)
    owner = make_stranger(make_owner_email(slug))

    accept_invitation(
        bearer=InvitationBearer(owner.user_id, address=None, request_id=""),
        text=find_token(onboarded.owner_invitation.url),
        now=timezone.now(),
    )

    (message,) = mail.outbox
    assert message.to == [make_owner_email(slug)]
    assert onboarded.owner_invitation.url in message.body
    assert onboarded.owner_invitation.is_mailed
    (member,) = list_members(tenant_id=onboarded.tenant_id)
    assert (member.email, member.role) == (make_owner_email(slug), Role.OWNER)


def test_a_tenant_is_created_even_if_the_mail_server_is_unavailable(
    slug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: object) -> int:
        raise ConnectionRefusedError

    monkeypatch.setattr("tenants.identity.invitations.email.send_mail", refuse)

    onboarded = onboard(slug)

    assert not onboarded.owner_invitation.is_mailed
    find_open_invitation(text=find_token(onboarded.owner_invitation.url), now=timezone.now())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("owner_email", "nobody"),
        ("plan", "no-such-plan"),
        ("plan", "\0"),
        ("region", "EU North"),
        ("name", ""),
    ],
)
def test_an_invalid_value_creates_nothing(slug: str, field: str, value: str) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        onboard(slug, **{field: value})

    assert exc_info.value.field == field
    assert find_tenant(slug=slug) is None
    assert mail.outbox == []


def test_no_tenant_is_created_without_the_key_management_service(
    slug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_: object) -> None:
        raise RootKeyUnavailable

    monkeypatch.setattr("tenants.identity.tenant_lifecycle.create_tenant_key", fail)

    with pytest.raises(Conflict, match="key management service"):
        onboard(slug)

    assert find_tenant(slug=slug) is None
    assert mail.outbox == []


def test_a_taken_slug_is_a_conflict_and_mails_nobody(slug: str) -> None:
    onboard(slug)
    mail.outbox.clear()

    with pytest.raises(Conflict, match="already exists"):
        onboard(slug)

    assert mail.outbox == []


def test_an_operator_with_read_only_access_creates_nothing(slug: str) -> None:
    def make_read_only_operator(tenant_id: TenantId) -> Actor:
        operator = OperatorIdentity("ola", can_change=False)
        return Actor(
            tenant_id,
            user_id=None,
            role=Role.AUDITOR,
            address=None,
            request_id="",
            operator=operator,
        )

    new = NewTenant(slug=slug, name="Initech", owner_email=make_owner_email(slug))
    with pytest.raises(Forbidden):
        onboard_tenant(new=new, actor_for=make_read_only_operator, now=timezone.now())

    assert find_tenant(slug=slug) is None


def test_no_owner_is_invited_to_an_unknown_tenant() -> None:
    unknown_id = TenantId("7e9d6c5b-0000-4000-8000-000000000000")

    with pytest.raises(NotFound):
        invite_owner(
            actor=build_system_actor(unknown_id), email="olga@acme.example", now=timezone.now()
        )


def test_while_a_tenant_has_no_owner_a_second_invitation_replaces_the_first(slug: str) -> None:
    onboarded = onboard(slug, owner_email=f"typo@{slug}.example")

    second_invitation = invite_owner(
        actor=build_system_actor(onboarded.tenant_id),
        email=make_owner_email(slug),
        now=timezone.now(),
    )

    with pytest.raises(NotFound):
        find_open_invitation(text=find_token(onboarded.owner_invitation.url), now=timezone.now())
    find_open_invitation(text=find_token(second_invitation.url), now=timezone.now())  # is open


def test_in_a_tenant_with_an_owner_an_invitation_leaves_earlier_invitations_open() -> None:
    acme = make_company("acme", ACME_PEOPLE)

    invitations = [
        invite_owner(actor=acme.platform, email=email, now=timezone.now())
        for email in ("eve@elsewhere.example", "emil@elsewhere.example")
    ]

    for invitation in invitations:
        open_invitation = find_open_invitation(text=find_token(invitation.url), now=timezone.now())
        assert open_invitation.tenant_id == acme.tenant_id


def test_a_tenants_administrator_cannot_invite_an_owner() -> None:
    globex = make_company("globex", GLOBEX_PEOPLE)

    with pytest.raises(Forbidden):
        invite_owner(
            actor=globex.administrator.actor, email="eve@elsewhere.example", now=timezone.now()
        )


def test_a_tenant_is_renamed_and_the_audit_log_has_both_names() -> None:
    globex, neighbour = make_company("globex", GLOBEX_PEOPLE), make_company("acme", ACME_PEOPLE)

    rename_tenant(actor=globex.platform, name=" Globex AG ", reason="merger", now=timezone.now())

    assert Tenant.objects.get(id=globex.tenant_id).name == "Globex AG"
    assert Tenant.objects.get(id=neighbour.tenant_id).name == neighbour.name
    with tenant_scope(globex.tenant_id):
        entry = AuditEntry.objects.get(action="tenant.renamed")
    assert (entry.before, entry.after) == ({"name": "Globex"}, {"name": "Globex AG"})
    assert entry.reason == "merger"


def test_a_tenants_administrator_cannot_rename_it() -> None:
    globex = make_company("globex", GLOBEX_PEOPLE)

    with pytest.raises(Forbidden):
        rename_tenant(actor=globex.administrator.actor, name="Mine", reason="", now=timezone.now())


def test_the_command_creates_a_tenant_and_prints_the_invitation_link(slug: str, plan: str) -> None:
    options = ("--name", "Initech", "--owner", make_owner_email(slug), "--plan", plan)

    output = run_tenant_command("create", slug, *options)

    token = find_token(output)
    # Invitations are open for seven days.
    invitation = find_open_invitation(text=token, now=timezone.now() + timedelta(days=6))
    assert (invitation.email, invitation.tenant_name) == (
        make_owner_email(slug),
        "Initech",
    )
    assert parse_token(BearerTokenKind.INVITATION, token) is not None
    assert f"Created the tenant {slug}." in output
    assert re.search(rf"^{slug} +active +local +Initech$", run_tenant_command("list"), re.MULTILINE)


def test_the_command_renames_suspends_and_resumes_a_tenant(slug: str) -> None:
    onboard(slug)

    assert f"{slug} is now called Initrode." in run_tenant_command(
        "rename", slug, "Initrode", *REASON
    )
    assert f"{slug} is suspended" in run_tenant_command("suspend", slug, *REASON)
    assert f"{slug} is active" in run_tenant_command("resume", slug, *REASON)


def test_the_command_invites_the_owner_again(slug: str) -> None:
    onboard(slug, owner_email=f"typo@{slug}.example")

    output = run_tenant_command("invite-owner", slug, make_owner_email(slug))

    invitation = find_open_invitation(text=find_token(output), now=timezone.now())
    assert invitation.email == make_owner_email(slug)


def test_the_command_refuses_a_reserved_slug_and_an_unknown_tenant(slug: str) -> None:
    with pytest.raises(CommandError, match="The slug support is reserved"):
        run_tenant_command(
            "create", "support", "--name", "Initech", "--owner", make_owner_email(slug)
        )
    with pytest.raises(CommandError, match="does not exist"):
        run_tenant_command("rename", slug, "Initrode", *REASON)
