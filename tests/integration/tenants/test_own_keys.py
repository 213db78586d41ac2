"""Keys that members create for themselves, within the policy."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from caret.contracts.api_key import KeyKind, parse_key
from caret.contracts.policy import Mode
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import Conflict, Forbidden, InvalidValue, NotFound
from tenants.base.permissions import Role
from tenants.identity.api_keys.operations import CreatedKey, revoke_key
from tenants.identity.api_keys.queries import KeyState, is_key_active
from tenants.identity.api_keys.scopes import KeyScope
from tenants.identity.api_keys.validation import KeyRequest
from tenants.identity.own_keys.operations import (
    MAX_OWN_KEYS,
    create_own_key,
    find_own_key_terms,
)
from tenants.models import ApiKey, AuditEntry
from tenants.policy.document import serialize_policy
from tenants.policy.operations import set_policy
from tenants.policy.overrides.operations import set_override
from tenants.policy.overrides.queries import OverrideSubject, SubjectKind
from tenants.policy.queries import find_policy_in_force
from tests.fixtures.companies import ACME_PEOPLE, Cast, Company, Person, make_company, make_key


@pytest.fixture
def company() -> Company:
    return make_company("initech", ACME_PEOPLE)


def change_policy(company: Company, **changes: Any) -> None:
    current_policy = find_policy_in_force(tenant_id=company.tenant_id).policy
    set_policy(
        actor=company.platform,
        document=serialize_policy(current_policy) | changes,
        reason="a test",
        now=timezone.now(),
    )


def create_key_for(person: Person, **fields: Any) -> CreatedKey:
    values: dict[str, Any] = {
        "kind": KeyKind.DEVELOPER,
        "owner_id": person.user_id,
        "name": "Laptop",
        "expires_at": None,
        "scopes": frozenset({KeyScope.INLINE}),
    }
    new = KeyRequest(**(values | fields))
    return create_own_key(actor=person.actor, new=new, now=timezone.now())


def test_a_developers_own_key_works_and_is_audited(company: Company) -> None:
    ada = company.developer

    created = create_key_for(ada)

    key = parse_key(created.text)
    assert key is not None
    assert is_key_active(tenant_id=company.tenant_id, key=key, now=timezone.now())
    assert (created.key.owner_email, created.key.created_by_email) == (ada.email, ada.email)
    with tenant_scope(company.tenant_id):
        entry = AuditEntry.objects.filter(action="key.created").get()
    assert str(entry.actor_id) == ada.user_id


@pytest.mark.parametrize("role", [Role.BILLING, Role.AUDITOR])
def test_billing_and_auditors_cannot_create_keys_for_themselves(
    company: Company, role: Role
) -> None:
    with pytest.raises(Forbidden):
        create_key_for(company.people[role])


def test_the_policy_can_forbid_own_keys(company: Company) -> None:
    own_key = create_key_for(company.developer)
    change_policy(company, allows_own_keys=False)

    with pytest.raises(Forbidden):
        create_key_for(company.developer)

    assert not find_own_key_terms(actor=company.developer.actor).is_allowed
    revoke_key(  # revoking an own key is still allowed
        actor=company.developer.actor,
        lookup_id=own_key.key.lookup_id,
        reason="",
        now=timezone.now(),
    )


def test_an_own_key_has_only_scopes_that_the_policy_allows(company: Company) -> None:
    change_policy(company, features=["inline", "fim"])

    with pytest.raises(InvalidValue):
        create_key_for(company.developer, scopes=frozenset({KeyScope.INLINE, KeyScope.CHAT}))
    with pytest.raises(InvalidValue):  # the scope INFERENCE includes all modes
        create_key_for(company.developer, scopes=frozenset({KeyScope.INFERENCE}))
    with pytest.raises(InvalidValue):
        create_key_for(company.developer, scopes=frozenset({KeyScope.INLINE, KeyScope.USAGE_READ}))

    terms = find_own_key_terms(actor=company.developer.actor)
    assert terms.scopes == {KeyScope.INLINE, KeyScope.FIM}


def test_the_key_belongs_to_its_creator_even_if_the_request_names_another_owner(
    company: Company,
) -> None:
    other_user_id = company.administrator.user_id

    created = create_key_for(company.developer, owner_id=other_user_id, kind=KeyKind.SERVICE)

    assert created.key.kind is KeyKind.DEVELOPER
    assert created.key.owner_id == company.developer.user_id


def test_an_override_of_the_user_limits_lifetime_and_scopes(company: Company) -> None:
    ada, now = company.developer, timezone.now()
    set_override(
        actor=company.platform,
        subject=OverrideSubject(SubjectKind.USER, UUID(ada.user_id)),
        document={"max_key_lifetime_days": 7, "features": [Mode.INLINE.value]},
        reason="test",
        now=now,
    )

    with pytest.raises(InvalidValue, match="7 days"):
        create_key_for(ada, expires_at=now + timedelta(days=8))
    with pytest.raises(InvalidValue, match="7 days"):
        make_key(company, ada)  # also if another actor creates the key for this user

    terms = find_own_key_terms(actor=ada.actor)
    assert terms.max_days == 7
    assert terms.scopes == {KeyScope.INLINE}
    assert create_key_for(ada, expires_at=now + timedelta(days=7)).key.state is KeyState.ACTIVE


def test_a_member_revokes_only_their_own_keys(company: Company, cast: Cast) -> None:
    own_id = create_key_for(company.developer).key.lookup_id
    other_id = make_key(company, company.administrator).key.lookup_id
    foreign_id = make_key(cast.globex, cast.globex.developer).key.lookup_id
    arguments: dict[str, Any] = {"reason": "", "now": timezone.now()}

    revoked = revoke_key(actor=company.developer.actor, lookup_id=own_id, **arguments)
    for lookup_id in (other_id, foreign_id):
        with pytest.raises(NotFound):
            revoke_key(actor=company.developer.actor, lookup_id=lookup_id, **arguments)
    with pytest.raises(Forbidden):
        revoke_key(actor=company.people[Role.AUDITOR].actor, lookup_id=other_id, **arguments)

    assert revoked.state is KeyState.REVOKED


def test_a_member_cannot_fill_the_tenant_with_keys(company: Company) -> None:
    first = create_key_for(company.developer)
    # Insert copies of the first key until the member has the maximum number of keys.
    with tenant_scope(company.tenant_id):
        row = ApiKey.objects.get(lookup_id=first.key.lookup_id)
        for number in range(MAX_OWN_KEYS - 1):
            row.id, row.lookup_id = uuid4(), f"own{number:05}"
            row.revoked_at = timezone.now()  # a revoked key counts towards the limit for a while
            row._state.adding = True  # Django treats the row as new
            row.save(force_insert=True)

    with pytest.raises(Conflict):
        create_key_for(company.developer)
