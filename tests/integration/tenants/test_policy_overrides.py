"""Policy overrides of teams and users: saved, versioned, published, and isolated by tenant."""

from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.utils import timezone

from caret.contracts.policy import Mode, PolicyOverride
from caret.contracts.snapshot import SNAPSHOTS, TenantSnapshot, decode_snapshot
from caret.foundation.ids import UserId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound, VersionConflict
from tenants.base.permissions import Role
from tenants.base.redis_connection import connect_to_redis
from tenants.identity.api_keys.authentication import authenticate_key
from tenants.identity.api_keys.scopes import KeyScope
from tenants.identity.teams.operations import add_team_member, delete_team, remove_team_member
from tenants.models import AuditEntry, PolicyOverrideVersion
from tenants.policy.document import MAX_EXCLUSIONS, MAX_GLOB_CHARS, MAX_NAMES
from tenants.policy.overrides import operations
from tenants.policy.overrides.operations import set_override
from tenants.policy.overrides.queries import (
    OverrideInForce,
    OverrideSubject,
    SubjectKind,
    find_override,
    list_overrides,
    load_effective_policy,
    read_overrides,
)
from tests.fixtures.companies import (
    GLOBEX_PEOPLE,
    Cast,
    Company,
    Person,
    make_company,
    make_service_key,
)
from tests.fixtures.users import make_team

NO_CHAT: dict[str, Any] = {"features": ["inline", "fim", "block", "docstring"]}
# "*": in all repositories.
EXCLUDED_PATHS: dict[str, Any] = {"content_exclusion": {"*": ["src/keys/*"]}}


@pytest.fixture
def company() -> Company:
    return make_company("initech", GLOBEX_PEOPLE)


def make_user_subject(person: Person) -> OverrideSubject:
    return OverrideSubject(SubjectKind.USER, UUID(person.user_id))


def make_team_subject(company: Company, *people: Person) -> OverrideSubject:
    team_id = UUID(make_team(company))
    for person in people:
        add_team_member(
            actor=company.platform,
            team_id=team_id,
            user_id=person.user_id,
            now=timezone.now(),
        )
    return OverrideSubject(SubjectKind.TEAM, team_id)


def save_override(
    company: Company, subject: OverrideSubject, document: object, **fields: Any
) -> OverrideInForce:
    values: dict[str, Any] = {"actor": company.platform, "reason": "test", "now": timezone.now()}
    return set_override(subject=subject, document=document, **(values | fields))


def read_published(company: Company) -> TenantSnapshot:
    data = connect_to_redis().hget(SNAPSHOTS, company.tenant_id)
    assert isinstance(data, bytes)
    return decode_snapshot(data)


def list_overrides_of(snapshot: TenantSnapshot, person: Person) -> list[PolicyOverride]:
    return [
        snapshot.overrides[index] for index in snapshot.override_indexes.get(person.user_id, ())
    ]


def test_a_users_override_applies_only_to_that_user(company: Company) -> None:
    save_override(company, make_user_subject(company.developer), NO_CHAT)

    def load_modes(person: Person) -> frozenset[Mode]:
        policy = load_effective_policy(tenant_id=company.tenant_id, user_id=person.user_id)
        return policy.features

    assert Mode.CHAT not in load_modes(company.developer)
    assert Mode.CHAT in load_modes(company.administrator)


def test_a_change_creates_the_next_version_with_author_and_reason(company: Company) -> None:
    bob, subject = company.administrator, make_user_subject(company.developer)
    save_override(company, subject, NO_CHAT)

    saved = save_override(company, subject, EXCLUDED_PATHS, actor=bob.actor, reason="keys leaked")

    assert (saved.version, saved.author_email, saved.reason) == (2, bob.email, "keys leaked")
    assert saved.override == PolicyOverride(content_exclusion={"*": ("src/keys/*",)})
    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.filter(action="policy_override.changed").latest("sequence")
    assert entry.target == f"user:{company.developer.user_id}"
    assert entry.before == {"override": {"features": sorted(NO_CHAT["features"])}}
    assert entry.after == {"override": EXCLUDED_PATHS}


def test_the_snapshot_has_the_overrides_of_each_user(company: Company) -> None:
    team = make_team_subject(company, company.developer, company.administrator)

    save_override(company, team, NO_CHAT)
    save_override(company, make_user_subject(company.developer), EXCLUDED_PATHS)

    snapshot = read_published(company)
    assert len(snapshot.overrides) == 2
    team_override, user_override = list_overrides_of(snapshot, company.developer)
    assert not team_override.content_exclusion
    assert user_override.content_exclusion
    assert len(list_overrides_of(snapshot, company.administrator)) == 1


def test_the_overrides_of_all_teams_apply_to_a_user(company: Company) -> None:
    for document in (NO_CHAT, EXCLUDED_PATHS):
        save_override(company, make_team_subject(company, company.developer), document)

    assert len(list_overrides_of(read_published(company), company.developer)) == 2


def test_leaving_a_team_ends_its_override_for_the_user(company: Company) -> None:
    team = make_team_subject(company, company.developer)
    save_override(company, team, NO_CHAT)

    remove_team_member(
        actor=company.platform,
        team_id=team.id,
        user_id=company.developer.user_id,
        now=timezone.now(),
    )

    assert read_published(company).override_indexes == {}


def test_deleting_a_team_ends_its_override(company: Company) -> None:
    team = make_team_subject(company, company.developer)
    save_override(company, team, NO_CHAT)

    delete_team(actor=company.platform, team_id=team.id, now=timezone.now())

    assert read_overrides(tenant_id=company.tenant_id).all == {}
    assert read_published(company).overrides == ()


def test_an_empty_document_lifts_an_override(company: Company) -> None:
    subject = make_user_subject(company.developer)
    save_override(company, subject, NO_CHAT)

    saved = save_override(company, subject, {})

    assert (saved.version, saved.override) == (2, PolicyOverride())
    assert read_published(company).override_indexes == {}
    actor = company.administrator.actor
    assert list_overrides(actor=actor, limit=10, cursor=None).rows == []


def test_replacing_an_outdated_version_is_a_conflict_with_both_versions(company: Company) -> None:
    subject = make_user_subject(company.developer)
    save_override(company, subject, NO_CHAT, expected_version=0)  # 0: there is no override yet

    with pytest.raises(VersionConflict) as exc_info:
        save_override(company, subject, {}, expected_version=0)

    assert (exc_info.value.current_version, exc_info.value.expected_version) == (1, 0)
    assert find_override(actor=company.platform, subject=subject).version == 1


def test_concurrent_changes_are_applied_one_after_the_other(company: Company) -> None:
    subject = make_user_subject(company.developer)

    def change() -> None:
        save_override(company, subject, NO_CHAT)
        connection.close()

    threads = [Thread(target=change) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with tenant_scope(company.tenant_id):
        versions = sorted(PolicyOverrideVersion.objects.values_list("version", flat=True))
    assert versions == [1, 2, 3, 4]


@pytest.mark.parametrize("role", [Role.BILLING, Role.AUDITOR, Role.DEVELOPER])
def test_changing_an_override_requires_permission(cast: Cast, role: Role) -> None:
    with pytest.raises(Forbidden):
        save_override(
            cast.acme,
            make_user_subject(cast.acme.developer),
            {},
            actor=cast.acme.people[role].actor,
        )


def test_another_tenants_users_and_teams_cannot_get_an_override(
    company: Company, cast: Cast
) -> None:
    bob = company.administrator.actor
    team = make_team_subject(cast.acme)

    for subject in (
        make_user_subject(cast.acme.developer),
        team,
        OverrideSubject(SubjectKind.TEAM, uuid4()),
    ):
        with pytest.raises(NotFound):
            save_override(company, subject, NO_CHAT, actor=bob)
        with pytest.raises(NotFound):
            find_override(actor=bob, subject=subject)

    save_override(company, make_user_subject(company.developer), NO_CHAT)
    assert (
        make_user_subject(company.developer)
        not in read_overrides(tenant_id=cast.acme.tenant_id).all
    )


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ([], "override"),
        ({"x": 1}, "override"),
        ({"features": ["telepathy"]}, "features[0]"),
        ({"features": "chat"}, "features"),
        ({"models": ["x"] * 99 + [""]}, "models"),  # the last name is empty
        ({"models": [f"m{n}" for n in range(MAX_NAMES + 1)]}, "models"),
        ({"regions": ["x" * (MAX_GLOB_CHARS + 1)]}, "regions"),
        ({"content_exclusion": {"*": [""]}}, "content_exclusion"),
        ({"content_exclusion": {"*": ["x"] * (MAX_EXCLUSIONS + 1)}}, "content_exclusion"),
        ({"content_exclusion": {"*": ["\0"]}}, "content_exclusion"),
        ({"user_limit": {"per_minute": 0, "burst": 1}}, "user_limit.per_minute"),
        ({"key_limit": {"per_minute": 1}}, "key_limit"),  # without a burst
        ({"max_key_lifetime_days": 0}, "max_key_lifetime_days"),
        ({"has_secret_filter": None}, "has_secret_filter"),
    ],
)
def test_a_malformed_override_is_not_saved_and_the_error_names_its_field(
    company: Company, document: object, field: str
) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        save_override(company, make_user_subject(company.developer), document)

    assert exc_info.value.field == field
    assert read_overrides(tenant_id=company.tenant_id).all == {}


def test_a_change_without_a_reason_is_refused(company: Company) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        save_override(company, make_user_subject(company.developer), NO_CHAT, reason=" ")

    assert exc_info.value.field == "reason"


@pytest.mark.parametrize("limit_name", ["MAX_OVERRIDES", "MAX_GLOBS"])
def test_the_number_of_overrides_and_globs_is_limited(
    company: Company, monkeypatch: pytest.MonkeyPatch, limit_name: str
) -> None:
    monkeypatch.setattr(operations, limit_name, 1)
    save_override(company, make_user_subject(company.developer), EXCLUDED_PATHS)

    with pytest.raises(Conflict):
        save_override(company, make_user_subject(company.administrator), EXCLUDED_PATHS)

    # An override that exists can still be changed.
    changed = save_override(company, make_user_subject(company.developer), {"features": []})
    assert changed.version == 2


def test_an_override_set_by_a_key_names_the_key(company: Company) -> None:
    service_key = make_service_key(company, KeyScope.POLICIES_WRITE)
    actor = authenticate_key(text=service_key.text, address=None, now=timezone.now())

    saved = save_override(company, make_user_subject(company.developer), NO_CHAT, actor=actor)

    assert (saved.author_email, saved.author_key) == (None, service_key.key.lookup_id)


def test_overrides_are_paginated_newest_first(company: Company) -> None:
    teams = [make_team_subject(company) for _ in range(3)]
    for team in teams:
        save_override(company, team, NO_CHAT)
    actor = company.administrator.actor

    first = list_overrides(actor=actor, limit=2, cursor=None)
    second = list_overrides(actor=actor, limit=2, cursor=first.next_cursor)

    subjects = [row.subject for row in (*first.rows, *second.rows)]
    assert subjects == teams[::-1]
    assert second.next_cursor is None


def test_overrides_of_teams_and_user_are_combined(company: Company) -> None:
    ada = company.developer
    for document in (NO_CHAT, {"features": ["inline", "chat"]}):
        save_override(company, make_team_subject(company, ada), document)
    save_override(company, make_user_subject(ada), {"models": ["small"]})

    policy = load_effective_policy(tenant_id=company.tenant_id, user_id=UserId(ada.user_id))

    assert policy.features == {Mode.INLINE}
    assert policy.models == frozenset({"small"})
