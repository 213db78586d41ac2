"""The key of the playground, the page of the console with an editor.

Each member has one key, valid for an hour. Leaving the page or starting again ends its secret.
"""

from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from caret.contracts.api_key import KeyKind, parse_key
from caret.contracts.policy import Mode
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden
from tenants.base.permissions import Role
from tenants.fleet.snapshots.queries import read_snapshot
from tenants.identity.api_keys.operations import CreatedKey, KeyRotation, revoke_key, rotate_key
from tenants.identity.api_keys.playground import (
    LIFETIME,
    create_playground_key,
    end_playground_key,
)
from tenants.identity.api_keys.queries import KeyState, find_key, is_key_active
from tenants.identity.api_keys.row_writes import MAX_KEYS
from tenants.identity.member_lifecycle import remove_member
from tenants.models import ApiKey, AuditEntry
from tests.fakes.keys import fill_with_keys
from tests.fixtures.companies import Cast, Company, Person, make_company, make_key
from tests.fixtures.users import make_colleague


@pytest.fixture
def company() -> Company:
    return make_company("initech", {Role.ADMINISTRATOR: "bob", Role.DEVELOPER: "gus"})


def start_playground(person: Person, now: datetime | None = None) -> CreatedKey:
    return create_playground_key(actor=person.actor, now=now or timezone.now())


def is_valid(company: Company, created: CreatedKey, now: datetime | None = None) -> bool:
    key = parse_key(created.text)
    assert key is not None
    return is_key_active(tenant_id=company.tenant_id, key=key, now=now or timezone.now())


def count_keys(company: Company) -> int:
    with tenant_scope(company.tenant_id):
        return ApiKey.objects.count()


def list_key_actions(company: Company) -> list[str]:
    with tenant_scope(company.tenant_id):
        entries = AuditEntry.objects.filter(action__startswith="key.").order_by("sequence")
        return list(entries.values_list("action", flat=True))


def test_a_playground_key_expires_in_an_hour_and_has_the_pages_modes(company: Company) -> None:
    now = timezone.now()

    created = start_playground(company.developer, now)

    assert (created.key.kind, created.key.name) == (KeyKind.TEST, "Playground")
    assert created.key.owner_id == company.developer.user_id
    assert created.key.expires_at == now + LIFETIME
    assert is_valid(company, created)
    assert not is_valid(company, created, now + LIFETIME)
    (credential,) = read_snapshot(tenant_id=company.tenant_id, now=now).credentials
    assert credential.modes == frozenset({Mode.INLINE, Mode.FIM, Mode.BLOCK})


@pytest.mark.parametrize("role", [Role.BILLING, Role.AUDITOR])
def test_roles_without_completions_get_no_playground_key(cast: Cast, role: Role) -> None:
    with pytest.raises(Forbidden):
        start_playground(cast.acme.people[role])


def test_the_platform_gets_no_playground_key(company: Company) -> None:
    with pytest.raises(Forbidden):
        create_playground_key(actor=company.platform, now=timezone.now())


def test_starting_again_replaces_the_secret_and_adds_no_key(company: Company) -> None:
    first = start_playground(company.developer)

    second = start_playground(company.developer)

    assert not is_valid(company, first)
    assert is_valid(company, second)
    assert second.key.lookup_id == first.key.lookup_id
    assert count_keys(company) == 1
    assert list_key_actions(company) == ["key.created", "key.rotated"]


def test_each_member_has_their_own_playground_key(company: Company) -> None:
    developers_key = start_playground(company.developer)
    administrators_key = start_playground(company.administrator)

    assert is_valid(company, developers_key)
    assert is_valid(company, administrators_key)
    assert count_keys(company) == 2


def test_leaving_ends_the_key_immediately(company: Company) -> None:
    created = start_playground(company.developer)

    is_ended = end_playground_key(
        actor=company.developer.actor, issued_at=created.key.issued_at, now=timezone.now()
    )

    assert is_ended
    assert not is_valid(company, created)
    assert list_key_actions(company) == ["key.created", "key.ended"]


def test_leaving_a_second_time_changes_nothing(company: Company) -> None:
    created = start_playground(company.developer)

    is_ended, is_ended_again = [
        end_playground_key(
            actor=company.developer.actor, issued_at=created.key.issued_at, now=timezone.now()
        )
        for _ in range(2)
    ]

    assert (is_ended, is_ended_again) == (True, False)
    assert list_key_actions(company) == ["key.created", "key.ended"]


# The older secret is the key's first one, or one that replaced the first.
@pytest.mark.parametrize("num_starts", [1, 2])
def test_leaving_an_older_page_keeps_a_newer_secret(company: Company, num_starts: int) -> None:
    for _ in range(num_starts):
        older = start_playground(company.developer)
    newer = start_playground(company.developer)

    is_ended = end_playground_key(
        actor=company.developer.actor, issued_at=older.key.issued_at, now=timezone.now()
    )

    assert not is_ended
    assert is_valid(company, newer)


def test_a_user_can_start_again_after_leaving(company: Company) -> None:
    first = start_playground(company.developer)
    end_playground_key(
        actor=company.developer.actor, issued_at=first.key.issued_at, now=timezone.now()
    )

    second = start_playground(company.developer)

    assert is_valid(company, second)
    assert second.key.lookup_id == first.key.lookup_id


def test_a_colleague_cannot_end_the_key(company: Company) -> None:
    created = start_playground(company.developer)

    is_ended = end_playground_key(
        actor=company.administrator.actor, issued_at=created.key.issued_at, now=timezone.now()
    )

    assert not is_ended
    assert is_valid(company, created)


def test_starting_again_does_not_restore_a_revoked_key(company: Company) -> None:
    now = timezone.now()
    first = start_playground(company.developer)
    lookup_id = first.key.lookup_id
    admin = company.administrator.actor
    revoke_key(actor=admin, lookup_id=lookup_id, reason="no", now=now)

    second = start_playground(company.developer)

    assert second.key.lookup_id != lookup_id
    assert find_key(actor=admin, lookup_id=lookup_id, now=now).state is KeyState.REVOKED


def test_an_ordinary_key_named_playground_is_not_affected(company: Company) -> None:
    ordinary_key = make_key(company, company.developer, name="Playground")

    start_playground(company.developer)

    assert is_valid(company, ordinary_key)


def test_a_playground_key_counts_against_the_key_limit(company: Company) -> None:
    fill_with_keys(company, MAX_KEYS)

    with pytest.raises(Conflict):
        start_playground(company.developer)


def test_removing_the_member_ends_the_key(company: Company) -> None:
    colleague = make_colleague(company, Role.DEVELOPER)
    created = start_playground(colleague)

    remove_member(
        actor=company.administrator.actor,
        user_id=colleague.user_id,
        reason="left",
        now=timezone.now(),
    )

    assert not is_valid(company, created, timezone.now() + timedelta(seconds=1))


def test_a_playground_key_cannot_be_rotated(company: Company) -> None:
    created = start_playground(company.developer)
    longer = KeyRotation(overlap=timedelta(0), expires_at=timezone.now() + timedelta(days=30))

    with pytest.raises(Conflict):
        rotate_key(
            actor=company.administrator.actor,
            lookup_id=created.key.lookup_id,
            rotation=longer,
            now=timezone.now(),
        )

    assert is_valid(company, created)
