"""Users, members, invitations and teams of a demo company."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from caret.foundation.ids import TenantId, UserId
from tenants.base.bearer_tokens import TenantToken
from tenants.base.permissions import Role
from tenants.demo.traffic.personas import TEAMS, Persona
from tenants.demo.traffic.timeline import DemoTimeline, TimelineEvent
from tenants.identity.invitations.operations import (
    InvitationBearer,
    accept_invitation,
    create_invitation,
    revoke_invitation,
)
from tenants.identity.invitations.queries import InvitationView
from tenants.identity.member_lifecycle import change_role, remove_member
from tenants.identity.members.operations import add_member
from tenants.identity.teams.operations import add_team_member, create_team
from tenants.models import User
from tenants.security.authorization.actor import Actor

_IP_ADDRESS = "192.0.2.{}"  # a network reserved for documentation (RFC 5737)
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class DemoUser:
    """A user with an account, who is or becomes a member."""

    user_id: UserId
    persona: Persona
    address: str  # IP address of the user's requests

    def as_actor(self, tenant_id: TenantId) -> Actor:
        return Actor(
            tenant_id=tenant_id,
            user_id=self.user_id,
            role=self.persona.role,
            address=self.address,
            request_id="",
        )


@dataclass(frozen=True, slots=True)
class DemoCompany:
    timeline: DemoTimeline
    people: list[DemoUser]  # an owner first
    teams: dict[str, UUID]  # IDs by name

    def find_actor(self, role: Role) -> Actor:
        """Return the first member with the role, as an actor.

        This member joins before the period begins.
        """
        person = next(person for person in self.people if person.persona.role is role)
        return person.as_actor(self.timeline.tenant_id)

    @property
    def leaver(self) -> DemoUser:
        """The member who leaves the company during the period."""
        return self.developers[1]

    @property
    def spender(self) -> DemoUser:
        """The member whose hard budget is used up before the month ends."""
        return self.developers[2]

    @property
    def erased(self) -> DemoUser:
        """The member whose personal data is erased on the last day."""
        return self.developers[3]

    @property
    def leaves_at(self) -> datetime:
        """The time at which `leaver` leaves."""
        return self.timeline.moment_at(0.8, hour=16)

    @property
    def developers(self) -> list[DemoUser]:
        return [person for person in self.people if person.persona.role is Role.DEVELOPER]


def create_company(timeline: DemoTimeline, personas: list[Persona]) -> DemoCompany:
    """Create accounts, an owner, members and teams, in the week before the period.

    The owner invites the members. Users who arrive during the period only get an account.
    """
    people = [
        DemoUser(
            _create_account(persona, timeline.moment_before(days=5)),
            persona,
            _IP_ADDRESS.format(10 + number),
        )
        for number, persona in enumerate(personas)
    ]
    owner, *colleagues = people
    add_member(
        actor=timeline.platform,
        user_id=owner.user_id,
        role=Role.OWNER,
        now=timeline.moment_before(days=4, hour=8),
    )
    teams = _make_teams(owner.as_actor(timeline.tenant_id), timeline.moment_before(days=4))
    company = DemoCompany(timeline, people, teams)
    _put_into_team(company, owner, timeline.moment_before(days=4, hour=10))
    for number, person in enumerate(colleagues):
        if not person.persona.arrival_share:
            invited_at = timeline.moment_before(days=3) + number * 7 * _MINUTE
            _add_company_member(company, person, invited_at)
    return company


def plan_membership_changes(company: DemoCompany) -> list[TimelineEvent]:
    """Return the events of members who join, change role or leave, and of unused invitations."""
    timeline, owner = company.timeline, company.find_actor(Role.OWNER)
    joining = [
        TimelineEvent(
            timeline.moment_at(person.persona.arrival_share), _make_join_action(company, person)
        )
        for person in company.people
        if person.persona.arrival_share
    ]
    promoted_user, leaver = company.developers[0], company.leaver
    return [
        *joining,
        *_plan_invitations(company),
        TimelineEvent(
            timeline.moment_at(0.45, hour=11),
            lambda now: change_role(
                actor=owner,
                user_id=promoted_user.user_id,
                role=Role.ADMINISTRATOR,
                reason="Manages the team's keys from now on.",
                now=now,
            ),
        ),
        TimelineEvent(
            company.leaves_at,
            lambda now: remove_member(
                actor=owner, user_id=leaver.user_id, reason="Left the company.", now=now
            ),
        ),
    ]


def _create_account(persona: Persona, now: datetime) -> UserId:
    """Create an account without a usable password, or reuse that of an earlier attempt."""
    user, _ = User.objects.get_or_create(
        email=persona.email,
        defaults={"name": persona.name, "created_at": now, "password": "!"},
    )
    return UserId(str(user.id))


def _make_teams(owner: Actor, now: datetime) -> dict[str, UUID]:
    return {name: create_team(actor=owner, name=name, now=now).id for name in TEAMS}


def _add_company_member(company: DemoCompany, person: DemoUser, now: datetime) -> None:
    """Add a user by an invitation that the user accepts within minutes."""
    tokens: list[TenantToken] = []

    def deliver(_: str, token: TenantToken) -> bool:
        # Keep the token that an e-mail would contain.
        tokens.append(token)
        return True

    persona = person.persona
    create_invitation(
        actor=company.find_actor(Role.OWNER),
        email=persona.email,
        role=persona.role,
        mailer=deliver,
        now=now,
    )
    bearer = InvitationBearer(person.user_id, person.address, request_id="")
    accept_invitation(bearer=bearer, text=tokens[0].text, now=now + 4 * _MINUTE)
    _put_into_team(company, person, now + 5 * _MINUTE)


def _make_join_action(company: DemoCompany, person: DemoUser) -> Callable[[datetime], None]:
    def join(now: datetime) -> None:
        add_member(
            actor=company.find_actor(Role.OWNER),
            user_id=person.user_id,
            role=person.persona.role,
            now=now,
        )
        _put_into_team(company, person, now + 2 * _MINUTE)

    return join


def _put_into_team(company: DemoCompany, person: DemoUser, now: datetime) -> None:
    add_team_member(
        actor=company.find_actor(Role.OWNER),
        team_id=company.teams[person.persona.team],
        user_id=person.user_id,
        now=now,
    )


def _plan_invitations(company: DemoCompany) -> list[TimelineEvent]:
    """Return the events of invitations that nobody accepts.

    At the end of the period, one has expired, one is revoked, and two are open.
    """
    timeline, slug = company.timeline, company.timeline.slug
    owner = company.find_actor(Role.OWNER)

    def make_invitation(
        name: str, role: Role = Role.DEVELOPER
    ) -> Callable[[datetime], InvitationView]:
        return lambda now: create_invitation(
            actor=owner, email=f"{name}@{slug}.example", role=role, mailer=_discard_mail, now=now
        )

    def invite_and_revoke(now: datetime) -> None:
        view = make_invitation("former.contractor")(now)
        revoke_invitation(actor=owner, invitation_id=view.id, now=now + 90 * _MINUTE)

    return [
        TimelineEvent(timeline.moment_at(0.1), make_invitation("never.answered")),
        TimelineEvent(timeline.moment_at(0.5), invite_and_revoke),
        TimelineEvent(timeline.now - timedelta(days=2), make_invitation("starts.monday")),
        TimelineEvent(
            timeline.now - timedelta(days=1), make_invitation("external.auditor", Role.AUDITOR)
        ),
    ]


def _discard_mail(_: str, __: TenantToken) -> bool:
    """Report success without sending an e-mail, because the address does not exist."""
    return True
