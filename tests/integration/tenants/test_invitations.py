"""Users accept invitations. Expired, revoked, replaced and forged invitations do not work."""

import secrets
from datetime import timedelta

import pytest
from django.core import mail
from django.test import override_settings
from django.utils import timezone

from caret.contracts.snapshot import TenantStatus
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.bearer_tokens import BearerTokenKind, create_token
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.permissions import Role
from tenants.identity.invitations.email import send_invitation as send_mail
from tenants.identity.invitations.operations import (
    LIFETIME,
    InvitationBearer,
    OpenInvitation,
    accept_invitation,
    create_invitation,
    find_open_invitation,
    revoke_invitation,
)
from tenants.identity.invitations.queries import (
    InvitationState,
    find_invitation,
    read_page_of_invitations,
)
from tenants.identity.members.tenant_status import set_status
from tenants.identity.teams.operations import create_team, delete_team
from tenants.models import AuditEntry, Invitation, TeamMembership
from tenants.security.authorization.directory import find_memberships
from tests.fixtures.companies import Cast, Company, Person, make_company
from tests.fixtures.users import Mailbox, make_colleague, make_stranger, send_invitation

# A token begins with "civ_" and 21 characters of the tenant's ID. The secret follows.
NUM_PREFIX_CHARS = 25


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.OWNER: "olga"})


@pytest.fixture
def mailbox() -> Mailbox:
    return Mailbox()


def accept(person: Person, text: str, *, after: timedelta = timedelta(0)) -> None:
    bearer = InvitationBearer(user_id=person.user_id, address="192.0.2.9", request_id="")
    accept_invitation(bearer=bearer, text=text, now=timezone.now() + after)


def roles_of(person: Person) -> list[Role]:
    return [row.role for row in find_memberships(user_id=person.user_id)]


def test_accepting_an_invitation_gives_the_invited_role(company: Company, mailbox: Mailbox) -> None:
    guest = make_stranger()
    send_invitation(company, guest.email.upper(), role=Role.AUDITOR, mailbox=mailbox)

    accept(guest, mailbox.last_token)

    assert roles_of(guest) == [Role.AUDITOR]


def test_an_invitation_works_once(company: Company, mailbox: Mailbox) -> None:
    guest = make_stranger()
    send_invitation(company, guest.email, mailbox=mailbox)
    accept(guest, mailbox.last_token)

    with pytest.raises(NotFound):
        accept(guest, mailbox.last_token)
    with pytest.raises(NotFound):
        find_open_invitation(text=mailbox.last_token, now=timezone.now())


def test_an_invitation_can_be_accepted_only_by_its_address(
    company: Company, mailbox: Mailbox
) -> None:
    guest, mallory = make_stranger(), make_stranger()
    send_invitation(company, guest.email, mailbox=mailbox)

    with pytest.raises(Forbidden):
        accept(mallory, mailbox.last_token)
    accept(guest, mailbox.last_token)

    assert (roles_of(guest), roles_of(mallory)) == ([Role.DEVELOPER], [])


def test_an_invitation_expires_after_seven_days(company: Company, mailbox: Mailbox) -> None:
    guest = make_stranger()
    invitation = send_invitation(company, guest.email, mailbox=mailbox)

    with pytest.raises(NotFound):
        accept(guest, mailbox.last_token, after=LIFETIME)

    expired_invitation = find_invitation(
        actor=company.platform, invitation_id=invitation.id, now=timezone.now() + LIFETIME
    )
    assert expired_invitation.state is InvitationState.EXPIRED


def test_a_revoked_invitation_does_not_work(company: Company, mailbox: Mailbox) -> None:
    guest = make_stranger()
    invitation = send_invitation(company, guest.email, mailbox=mailbox)

    revoke_invitation(actor=company.platform, invitation_id=invitation.id, now=timezone.now())

    with pytest.raises(NotFound):
        accept(guest, mailbox.last_token)


def test_a_new_invitation_replaces_the_previous_one(company: Company, mailbox: Mailbox) -> None:
    guest = make_stranger()
    send_invitation(company, guest.email, role=Role.ADMINISTRATOR, mailbox=mailbox)
    first_token = mailbox.last_token
    send_invitation(company, guest.email, role=Role.DEVELOPER, mailbox=mailbox)

    with pytest.raises(NotFound):
        accept(guest, first_token)
    accept(guest, mailbox.last_token)

    assert roles_of(guest) == [Role.DEVELOPER]


def test_a_token_with_another_tenants_id_is_refused(
    company: Company, mailbox: Mailbox, cast: Cast
) -> None:
    guest = make_stranger()
    send_invitation(company, guest.email, mailbox=mailbox)
    globex_token = create_token(BearerTokenKind.INVITATION, cast.globex.tenant_id).text
    forged = globex_token[:NUM_PREFIX_CHARS] + mailbox.last_token[NUM_PREFIX_CHARS:]

    with pytest.raises(NotFound):
        accept(guest, forged)

    assert roles_of(guest) == []


@pytest.mark.parametrize("text", ["", "civ_", "nonsense", "\0", "civ_" + "A" * 64])
def test_an_invalid_token_is_not_found(text: str) -> None:
    with pytest.raises(NotFound):
        accept(make_stranger(), text)


def test_a_member_cannot_be_invited(company: Company) -> None:
    with pytest.raises(Conflict):
        send_invitation(company, make_colleague(company).email)


def test_an_invitation_does_not_change_a_members_role(company: Company, mailbox: Mailbox) -> None:
    """The user became a member in another way after the invitation was sent."""
    guest = make_stranger()
    send_invitation(company, guest.email, role=Role.OWNER, mailbox=mailbox)
    second_mailbox = Mailbox()
    # For a while, the first invitation has another address, so that the second does not replace it.
    with tenant_scope(company.tenant_id):
        Invitation.objects.update(email="parked@x.example")
    send_invitation(company, guest.email, role=Role.DEVELOPER, mailbox=second_mailbox)
    accept(guest, second_mailbox.last_token)
    with tenant_scope(company.tenant_id):
        Invitation.objects.filter(email="parked@x.example").update(email=guest.email)

    with pytest.raises(Conflict):
        accept(guest, mailbox.last_token)

    assert roles_of(guest) == [Role.DEVELOPER]


def test_only_owners_can_invite_owners(company: Company) -> None:
    alice = make_colleague(company, Role.ADMINISTRATOR)

    with pytest.raises(Forbidden):
        create_invitation(
            actor=alice.actor,
            email="x@y.example",
            role=Role.OWNER,
            mailer=Mailbox(),
            now=timezone.now(),
        )


@pytest.mark.parametrize("role", [Role.BILLING, Role.AUDITOR, Role.DEVELOPER])
def test_inviting_requires_permission(company: Company, role: Role) -> None:
    with pytest.raises(Forbidden):
        create_invitation(
            actor=make_colleague(company, role).actor,
            email="x@y.example",
            role=Role.DEVELOPER,
            mailer=Mailbox(),
            now=timezone.now(),
        )


def test_an_invalid_address_cannot_be_invited(company: Company) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        send_invitation(company, "nobody")

    assert exc_info.value.field == "email"


@pytest.mark.parametrize(
    "statuses",
    [
        [TenantStatus.SUSPENDED],
        [TenantStatus.CLOSING],
        [TenantStatus.CLOSING, TenantStatus.CLOSED],
    ],
)
def test_invitations_of_a_tenant_that_is_not_active_do_not_work(
    company: Company, mailbox: Mailbox, statuses: list[TenantStatus]
) -> None:
    guest = make_stranger()
    send_invitation(company, guest.email, mailbox=mailbox)
    for status in statuses:
        set_status(actor=company.platform, status=status, reason="", now=timezone.now())

    with pytest.raises(NotFound):
        accept(guest, mailbox.last_token)


def test_nobody_can_be_invited_to_a_tenant_that_is_not_active(
    company: Company, mailbox: Mailbox
) -> None:
    set_status(actor=company.platform, status=TenantStatus.SUSPENDED, reason="", now=timezone.now())

    with pytest.raises(Conflict, match="not active"):
        send_invitation(company, "x@y.example", mailbox=mailbox)

    with tenant_scope(company.tenant_id):
        assert not Invitation.objects.filter(email="x@y.example").exists()


def test_the_token_is_not_stored(company: Company, mailbox: Mailbox) -> None:
    invitation = send_invitation(company, "x@y.example", mailbox=mailbox)

    with tenant_scope(company.tenant_id):
        row = Invitation.objects.get(id=invitation.id)
        entries = [str(vars(entry)) for entry in AuditEntry.objects.all()]
    secret = mailbox.last_token[NUM_PREFIX_CHARS:]
    assert secret not in str(vars(row))
    assert not any(secret in entry for entry in entries)


def test_a_failed_mail_leaves_the_invitation_unmailed(company: Company, mailbox: Mailbox) -> None:
    invitation = send_invitation(company, "x@y.example", mailbox=mailbox)
    mailbox.works = False
    unmailed_invitation = send_invitation(company, "z@y.example", mailbox=mailbox)

    assert invitation.mailed_at is not None
    assert unmailed_invitation.mailed_at is None


def test_another_tenants_invitation_can_be_neither_seen_nor_revoked(
    company: Company, mailbox: Mailbox, cast: Cast
) -> None:
    bob, guest = cast.globex.administrator.actor, make_stranger()
    invitation = send_invitation(company, guest.email, mailbox=mailbox)

    with pytest.raises(NotFound):
        revoke_invitation(actor=bob, invitation_id=invitation.id, now=timezone.now())
    page = read_page_of_invitations(actor=bob, limit=200, cursor=None, now=timezone.now())

    assert invitation.id not in {row.id for row in page.rows}
    accept(guest, mailbox.last_token)


def test_a_token_shows_the_invited_address_and_tenant(company: Company, mailbox: Mailbox) -> None:
    send_invitation(company, "x@y.example", mailbox=mailbox)

    assert find_open_invitation(text=mailbox.last_token, now=timezone.now()) == OpenInvitation(
        "x@y.example", company.tenant_id, company.name
    )


@override_settings(
    EMAIL_BACKEND="django.core.mail.backends.locmem.EmailBackend",
    CONSOLE_URL="https://caret.example",
)
def test_the_mail_has_the_link_and_a_one_line_subject(company: Company) -> None:
    token = create_token(BearerTokenKind.INVITATION, company.tenant_id)
    mail.outbox = []

    assert send_mail("x@y.example", token, tenant_name="Acme\r\nBcc: all@y.example")

    (message,) = mail.outbox
    assert message.subject == "Invitation to join Acme Bcc: all@y.example in Caret"
    assert message.recipients() == ["x@y.example"]
    assert f"https://caret.example/invitation/{token.text}" in message.body


@override_settings(
    EMAIL_BACKEND="django.core.mail.backends.smtp.EmailBackend",
    EMAIL_HOST="127.0.0.1",
    EMAIL_PORT=1,  # no server listens on this port
)
def test_an_unreachable_mail_server_raises_no_error(company: Company) -> None:
    token = create_token(BearerTokenKind.INVITATION, company.tenant_id)

    assert not send_mail(f"{secrets.token_hex(4)}@y.example", token, tenant_name="Acme")


def test_a_guest_joins_the_team_of_the_invitation_unless_it_was_deleted(
    company: Company, mailbox: Mailbox
) -> None:
    team = create_team(actor=company.platform, name="Core", now=timezone.now())
    deleted_team = create_team(actor=company.platform, name="Gone", now=timezone.now())
    guests = [make_stranger(), make_stranger()]
    for guest, team_id in zip(guests, (team.id, deleted_team.id), strict=True):
        create_invitation(
            actor=company.people[Role.OWNER].actor,
            email=guest.email,
            role=Role.DEVELOPER,
            team_id=team_id,
            mailer=mailbox,
            now=timezone.now(),
        )
    delete_team(actor=company.platform, team_id=deleted_team.id, now=timezone.now())

    for guest, (_, token) in zip(guests, mailbox.mails, strict=True):
        accept(guest, token.text)

    assert [roles_of(guest) for guest in guests] == [[Role.DEVELOPER]] * 2
    with tenant_scope(company.tenant_id):
        users = TeamMembership.objects.filter(team_id=team.id).values_list("user_id", flat=True)
        assert [str(user) for user in users] == [guests[0].user_id]


def test_an_invitation_names_no_team_of_another_tenant(company: Company, cast: Cast) -> None:
    foreign_team = create_team(actor=cast.globex.platform, name="Theirs", now=timezone.now())

    with pytest.raises(NotFound):
        create_invitation(
            actor=company.people[Role.OWNER].actor,
            email="eve@guest.example",
            role=Role.DEVELOPER,
            team_id=foreign_team.id,
            mailer=Mailbox(),
            now=timezone.now(),
        )
