"""Search for API keys by their properties, page by page; another tenant's keys are never found."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from caret.contracts.api_key import KeyKind
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.errors import InvalidValue
from tenants.identity.api_keys.playground import create_playground_key
from tenants.identity.api_keys.queries import KeyState
from tenants.identity.api_keys.scopes import KeyScope
from tenants.identity.api_keys.search import KeyConcern, KeyFilter, KeyOrder, count_keys, find_keys
from tenants.models import ApiKey
from tenants.security.authorization.actor import Actor
from tests.fixtures.companies import (
    GLOBEX_PEOPLE,
    Company,
    make_company,
    make_key,
    make_service_key,
)


@pytest.fixture
def company() -> Company:
    """Make a company with three keys: Anvil (the developer's), Bellows (the administrator's), and
    crane (a service key)."""
    company = make_company("initech", GLOBEX_PEOPLE)
    make_key(company, company.developer, name="Anvil")
    make_key(company, company.administrator, name="Bellows")
    make_service_key(company, KeyScope.KEYS_READ, name="crane")
    return company


def find_key_names(actor: Actor, order: KeyOrder = KeyOrder.NAME, **fields: Any) -> list[str]:
    page = find_keys(
        actor=actor,
        key_filter=KeyFilter(order=order, is_descending=False, **fields),
        limit=10,
        cursor=None,
        now=timezone.now(),
    )
    return [key.name for key in page.rows]


def update_key(company: Company, name: str, **values: Any) -> None:
    with tenant_scope(company.tenant_id):
        ApiKey.objects.filter(name=name).update(**values)


@pytest.mark.parametrize("text", ["anvi", "NVIL", "gus@", " Anvil "])
def test_a_key_is_found_by_part_of_its_name_or_owners_address(company: Company, text: str) -> None:
    assert find_key_names(company.administrator.actor, text=text) == ["Anvil"]


def test_a_key_is_found_by_its_prefix(company: Company) -> None:
    with tenant_scope(company.tenant_id):
        lookup_id = ApiKey.objects.get(name="Bellows").lookup_id

    assert find_key_names(company.administrator.actor, text=f"cpk_live_{lookup_id}") == ["Bellows"]
    assert find_key_names(company.administrator.actor, text=lookup_id[:6]) == ["Bellows"]


@pytest.mark.parametrize("text", ["%", "\0", "\ud800"])
def test_unusual_search_texts_find_nothing(company: Company, text: str) -> None:
    assert find_key_names(company.administrator.actor, text=text) == []


def test_keys_are_filtered_by_kind_state_and_owner(company: Company) -> None:
    actor = company.administrator.actor
    update_key(company, "Anvil", revoked_at=timezone.now())
    update_key(company, "Bellows", expires_at=timezone.now())

    assert find_key_names(actor, kind=KeyKind.SERVICE) == ["crane"]
    assert find_key_names(actor, state=KeyState.ACTIVE) == ["crane"]
    assert find_key_names(actor, state=KeyState.EXPIRED) == ["Bellows"]
    assert find_key_names(actor, state=KeyState.REVOKED) == ["Anvil"]
    assert find_key_names(actor, owner_id=company.developer.user_id) == ["Anvil"]


def test_a_developer_finds_only_their_own_keys(company: Company) -> None:
    assert find_key_names(company.developer.actor) == ["Anvil"]


def test_another_tenants_keys_are_not_found(company: Company) -> None:
    other_company = make_company("hooli", GLOBEX_PEOPLE)

    assert find_key_names(other_company.administrator.actor) == []
    assert (
        find_key_names(other_company.administrator.actor, owner_id=company.developer.user_id) == []
    )


def test_playground_keys_are_listed_only_on_request(company: Company) -> None:
    create_playground_key(actor=company.developer.actor, now=timezone.now())

    assert find_key_names(company.developer.actor) == ["Anvil"]
    assert find_key_names(company.developer.actor, is_playground=True) == ["Playground"]


def test_a_leaked_playground_key_is_listed_as_leaked(company: Company) -> None:
    actor, now = company.administrator.actor, timezone.now()
    create_playground_key(actor=company.developer.actor, now=now)
    update_key(company, "Playground", leaked_at=now)

    assert find_key_names(actor, concern=KeyConcern.LEAKED) == ["Playground"]
    assert count_keys(actor=actor, now=now).leaked == 1
    assert "Playground" not in find_key_names(actor)


def test_keys_are_sorted_by_name_creation_expiry_or_last_use(company: Company) -> None:
    """Keys without an expiry come last, and keys that were never used come first."""
    actor, now = company.administrator.actor, timezone.now()
    update_key(company, "Anvil", last_used_at=now, expires_at=now + timedelta(days=2))
    update_key(company, "Bellows", last_used_at=now - timedelta(days=1))
    update_key(company, "crane", expires_at=now + timedelta(days=1))

    assert find_key_names(actor, KeyOrder.NAME) == ["Anvil", "Bellows", "crane"]
    assert find_key_names(actor, KeyOrder.CREATED) == ["Anvil", "Bellows", "crane"]
    assert find_key_names(actor, KeyOrder.EXPIRES) == ["crane", "Anvil", "Bellows"]
    assert find_key_names(actor, KeyOrder.LAST_USED) == ["crane", "Bellows", "Anvil"]


@pytest.mark.parametrize("order", list(KeyOrder))
@pytest.mark.parametrize("is_descending", [False, True])
def test_pages_show_each_key_once(company: Company, order: KeyOrder, is_descending: bool) -> None:
    """Two keys have no expiry and were never used, so they tie.

    The pages by name are also compared with the sorted names.
    """
    update_key(company, "Anvil", expires_at=timezone.now(), last_used_at=timezone.now())
    names_on_pages: list[str] = []
    cursor = None

    for _ in range(3):
        page = find_keys(
            actor=company.administrator.actor,
            key_filter=KeyFilter(order=order, is_descending=is_descending),
            limit=1,
            cursor=cursor,
            now=timezone.now(),
        )
        names_on_pages += [key.name for key in page.rows]
        cursor = page.next_cursor

    assert cursor is None
    assert sorted(names_on_pages) == ["Anvil", "Bellows", "crane"]
    if order is KeyOrder.NAME:
        assert names_on_pages == sorted(names_on_pages, key=str.lower, reverse=is_descending)


# The cursors in Base64 contain [], ["x", "no id"], [1, 2] and ["2026-01-01", "x"].
@pytest.mark.parametrize(
    "cursor", ["x", "W10=", "é", "WyJ4IiwgIm5vIGlkIl0=", "WzEsIDJd", "WyIyMDI2LTAxLTAxIiwgIngiXQ=="]
)
def test_an_invalid_cursor_is_refused(company: Company, cursor: str) -> None:
    with pytest.raises(InvalidValue):
        find_keys(
            actor=company.administrator.actor,
            key_filter=KeyFilter(),
            limit=1,
            cursor=cursor,
            now=timezone.now(),
        )


def test_idle_unowned_and_leaked_keys_are_counted_and_found(company: Company) -> None:
    actor, now = company.administrator.actor, timezone.now()
    update_key(company, "Anvil", created_at=now - timedelta(days=91))
    update_key(company, "Bellows", leaked_at=now, revoked_at=now)
    # A key is unowned if its secret was shown to a user who may not create keys.
    update_key(company, "crane", issued_by_id=company.developer.user_id)

    counts = count_keys(actor=actor, now=now)

    assert (counts.listed, counts.idle, counts.unowned, counts.leaked) == (3, 1, 1, 1)
    assert (counts.idle_days, counts.has_idle_revocation) == (90, False)
    assert find_key_names(actor, concern=KeyConcern.IDLE) == ["Anvil"]
    assert find_key_names(actor, concern=KeyConcern.UNOWNED) == ["crane"]
    assert find_key_names(actor, concern=KeyConcern.LEAKED) == ["Bellows"]
