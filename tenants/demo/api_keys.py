"""API keys of a demo company, of every kind and state. Nobody can use them: no key text is kept.

`moment_at(0.3)` is a time at 30% of the demo period.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from caret.contracts.api_key import KeyKind
from caret.foundation.ids import LookupId, UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.demo.members import DemoCompany, DemoUser
from tenants.demo.traffic.request_generator import DemoDeveloper
from tenants.demo.traffic.timeline import TimelineEvent
from tenants.identity.api_keys.operations import KeyRotation, create_key, revoke_key, rotate_key
from tenants.identity.api_keys.scopes import KeyScope
from tenants.identity.api_keys.validation import KeyRequest
from tenants.models import ApiKey
from tenants.security.authorization.actor import Actor

_EDITORS: Final = ("vscode", "vscode", "vscode", "jetbrains", "jetbrains", "neovim", "zed")
_LANGUAGES: Final = {
    "Platform": ("go", "python", "yaml"),
    "Embedded": ("c", "cpp", "python"),
    "Web": ("typescript", "javascript", "css"),
    "Data": ("python", "sql", "rust"),
    "Security": ("rust", "go", "python"),
}
_AFTER_ARRIVAL: Final = timedelta(minutes=40)  # from a member's arrival to the creation of the key
_LIFETIME: Final = timedelta(days=180)  # the policy override of one team allows no more
_REQUESTS_PER_WORKDAY: Final = 58.0  # of a developer, on average
_FAST_PACE_FACTOR: Final = 1.9  # of services, and of the member who exhausts a budget
_ROLES_WITHOUT_KEYS: Final = (Role.BILLING, Role.AUDITOR)


@dataclass(slots=True)
class ActiveDevelopers:
    """The users and the service that send requests at the current time of the timeline."""

    company: DemoCompany
    # By user ID; None: the service.
    by_user_id: dict[UserId | None, DemoDeveloper] = field(default_factory=dict)

    def make_developer(self, key_id: UUID, person: DemoUser | None) -> DemoDeveloper:
        """Return the habits of a user, or of the service if `person` is None."""
        random = self.company.timeline.make_random(f"coder {person and person.persona.email}")
        team = person.persona.team if person else "Platform"
        return DemoDeveloper(
            tenant_id=self.company.timeline.tenant_id,
            user_id=UUID(person.user_id) if person else None,
            key_id=key_id,
            editor=random.choice(_EDITORS) if person else "",
            languages=_LANGUAGES[team],
            pace=_REQUESTS_PER_WORKDAY * self._choose_pace_factor(person, random.uniform(0.4, 1.6)),
            # About 0.3, and always from 0.12 to 0.5.
            acceptance_share=min(0.5, max(0.12, random.gauss(0.3, 0.06))),
        )

    def _choose_pace_factor(self, person: DemoUser | None, usual_factor: float) -> float:
        """Return `usual_factor`, or a higher one for a service and for the spender."""
        return _FAST_PACE_FACTOR if person in (None, self.company.spender) else usual_factor


def plan_keys(active_developers: ActiveDevelopers) -> list[TimelineEvent]:
    """Return the events of members' keys, service keys, and keys in other states.

    Users with a key send requests, until they leave or are about to be erased.
    """
    company = active_developers.company
    administrator = company.find_actor(Role.ADMINISTRATOR)
    key_owners = [
        person for person in company.people if person.persona.role not in _ROLES_WITHOUT_KEYS
    ]
    return [
        *(
            TimelineEvent(
                _find_arrival(company, person), _make_key_creation(active_developers, person)
            )
            for person in key_owners
        ),
        *_plan_service_keys(active_developers, administrator),
        *_plan_keys_of_other_states(company, administrator),
        TimelineEvent(
            company.leaves_at, lambda _: active_developers.by_user_id.pop(company.leaver.user_id)
        ),
        # The user who is erased today sends no requests in the last 30 hours.
        TimelineEvent(
            company.timeline.now - timedelta(hours=30),
            lambda _: active_developers.by_user_id.pop(company.erased.user_id, None),
        ),
    ]


def _find_arrival(company: DemoCompany, person: DemoUser) -> datetime:
    return company.timeline.moment_at(person.persona.arrival_share) + _AFTER_ARRIVAL


def _make_key_creation(
    active_developers: ActiveDevelopers, person: DemoUser
) -> Callable[[datetime], None]:
    company = active_developers.company
    # About one key in four is a test key. The length of the e-mail address decides, so that each
    # run makes the same choice.
    is_test_key = len(person.persona.email) % 4 == 0
    kind = KeyKind.TEST if is_test_key else KeyKind.DEVELOPER

    def create(now: datetime) -> None:
        new = KeyRequest(
            kind=kind,
            owner_id=person.user_id,
            name=f"{person.persona.name.split()[0]}'s laptop",
            expires_at=now + _LIFETIME,
        )
        actor = company.find_actor(Role.ADMINISTRATOR)
        key = create_key(actor=actor, new=new, now=now).key
        key_id = _find_key_id(actor, key.lookup_id)
        active_developers.by_user_id[person.user_id] = active_developers.make_developer(
            key_id, person
        )

    return create


def _plan_service_keys(active_developers: ActiveDevelopers, actor: Actor) -> list[TimelineEvent]:
    timeline = active_developers.company.timeline
    service_keys = (
        ("Review bot", frozenset({KeyScope.INFERENCE}), ("198.51.100.0/24",)),
        ("Usage dashboard", frozenset({KeyScope.USAGE_READ, KeyScope.QUALITY_READ}), ()),
        ("Directory sync", frozenset({KeyScope.MEMBERS_READ, KeyScope.TEAMS_WRITE}), ()),
    )

    def plan_creation(
        name: str, scopes: frozenset[KeyScope], networks: tuple[str, ...]
    ) -> TimelineEvent:
        new = KeyRequest(
            KeyKind.SERVICE,
            owner_id=None,
            name=name,
            expires_at=None,
            scopes=scopes,
            networks=networks,
        )

        def create(now: datetime) -> None:
            key = create_key(actor=actor, new=new, now=now).key
            if KeyScope.INFERENCE in scopes:
                active_developers.by_user_id[None] = active_developers.make_developer(
                    _find_key_id(actor, key.lookup_id), None
                )

        return TimelineEvent(timeline.moment_at(0.04, hour=14), create)

    return [plan_creation(*service_key) for service_key in service_keys]


def _plan_keys_of_other_states(company: DemoCompany, actor: Actor) -> list[TimelineEvent]:
    """Return the events of a rotated, a revoked, a leaked, an expired and an unused key."""
    timeline, owner = company.timeline, company.developers[0].user_id

    def create(name: str, at: datetime, expires_at: datetime | None = None) -> LookupId:
        new = KeyRequest(KeyKind.DEVELOPER, owner, name, expires_at or at + _LIFETIME)
        return create_key(actor=actor, new=new, now=at).key.lookup_id

    def create_and_rotate(now: datetime) -> None:
        lookup_id = create("Build server", now - timedelta(hours=5))
        rotation = KeyRotation(timedelta(days=2), reason="Yearly rotation of all build keys.")
        rotate_key(actor=actor, lookup_id=lookup_id, rotation=rotation, now=now)

    def create_and_revoke(now: datetime) -> None:
        lookup_id = create("Old workstation", now - timedelta(hours=3))
        revoke_key(
            actor=actor, lookup_id=lookup_id, reason="The workstation was returned.", now=now
        )

    def create_and_leak(now: datetime) -> None:
        lookup_id = create("Notebook on a shared drive", now - timedelta(hours=6))
        _report_leak(actor, lookup_id, now)

    return [
        TimelineEvent(
            timeline.moment_at(0.3, hour=15),
            lambda now: create("Trial", now, now + timedelta(days=3)),
        ),
        TimelineEvent(timeline.moment_at(0.2, hour=15), lambda now: create("Never used", now)),
        TimelineEvent(timeline.moment_at(0.55, hour=15), create_and_rotate),
        TimelineEvent(timeline.moment_at(0.6, hour=15), create_and_revoke),
        TimelineEvent(timeline.moment_at(0.66, hour=15), create_and_leak),
    ]


def _report_leak(actor: Actor, lookup_id: LookupId, now: datetime) -> None:
    """Revoke a leaked key, like tenants.identity.api_keys.leak_response, but send no e-mail."""
    with tenant_scope(actor.tenant_id):
        ApiKey.objects.filter(tenant_id=actor.tenant_id, lookup_id=lookup_id).update(
            leaked_at=now, leak_notified_at=now
        )
        reason = "Found in public: https://git.example/notes.ipynb"
        revoke_key(actor=actor, lookup_id=lookup_id, reason=reason, now=now)


def _find_key_id(actor: Actor, lookup_id: LookupId) -> UUID:
    with tenant_scope(actor.tenant_id):
        keys = ApiKey.objects.filter(tenant_id=actor.tenant_id, lookup_id=lookup_id)
        return keys.values_list("id", flat=True).get()
