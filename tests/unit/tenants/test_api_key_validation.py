"""The validation of requests for a new API key, made by users or with other keys."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from caret.contracts.api_key import KeyKind
from caret.foundation.ids import LookupId, TenantId, UserId
from tenants.base.errors import Forbidden, InvalidValue
from tenants.base.permissions import Role
from tenants.identity.api_keys.scopes import KeyScope, list_modes, list_permissions
from tenants.identity.api_keys.validation import (
    MAX_NETWORKS,
    KeyRequest,
    check_lifetime,
    require_no_later_expiry_than_actor,
    require_not_wider_than_actor,
    validate_key_request,
)
from tenants.security.authorization.actor import Actor, KeyGrant

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
REQUEST = KeyRequest(kind=KeyKind.SERVICE, owner_id=None, name="CI", expires_at=None)
ALICE = Actor(TenantId("t"), UserId("alice"), Role.ADMINISTRATOR, address=None, request_id="")


def key_actor(
    *scopes: KeyScope, networks: tuple[str, ...] = (), expires_at: datetime | None = None
) -> Actor:
    grant = KeyGrant(list_permissions(scopes), list_modes(scopes), networks, expires_at)
    return replace(ALICE, user_id=None, key=LookupId("Ab3dE6gH"), grant=grant)


def test_networks_are_normalized() -> None:
    request = replace(REQUEST, networks=("192.0.2.7", "192.0.2.7/32", "2001:DB8::/32"))

    assert validate_key_request(request, NOW).networks == ("192.0.2.7/32", "2001:db8::/32")


@pytest.mark.parametrize(
    "networks",
    [("x",), ("192.0.2.7/24",), ("",), ("10.0.0.0/8",) * (MAX_NETWORKS + 1), ("0.0.0.0/0\0",)],
)
def test_invalid_networks_are_rejected(networks: tuple[str, ...]) -> None:
    with pytest.raises(InvalidValue) as exc_info:
        validate_key_request(replace(REQUEST, networks=networks), NOW)

    assert exc_info.value.field == "networks"


@pytest.mark.parametrize("name", ["line\nbreak", "tab\tstop", "nul\0", "surrogate\ud800", "\u200b"])
def test_an_unprintable_name_has_its_own_message(name: str) -> None:
    with pytest.raises(InvalidValue, match="invisible characters") as exc_info:
        validate_key_request(replace(REQUEST, name=name), NOW)

    assert exc_info.value.field == "name"


def test_a_key_needs_a_scope() -> None:
    with pytest.raises(InvalidValue) as exc_info:
        validate_key_request(replace(REQUEST, scopes=frozenset()), NOW)

    assert exc_info.value.field == "scopes"


@pytest.mark.parametrize("kind", [KeyKind.DEVELOPER, KeyKind.TEST])
def test_only_service_keys_have_api_scopes(kind: KeyKind) -> None:
    request = replace(
        REQUEST,
        kind=kind,
        owner_id=UserId("ada"),
        scopes=frozenset({KeyScope.CHAT, KeyScope.USAGE_READ}),
    )

    with pytest.raises(InvalidValue) as exc_info:
        validate_key_request(request, NOW)

    assert exc_info.value.field == "scopes"


@pytest.mark.parametrize(
    ("days", "max_days", "is_valid"),
    [(30, 30, True), (31, 30, False), (None, 30, False), (None, None, True), (999, None, True)],
)
def test_a_lifetime_is_limited_by_the_policy(
    days: int | None, max_days: int | None, is_valid: bool
) -> None:
    expires_at = None if days is None else NOW + timedelta(days=days)

    if is_valid:
        check_lifetime(expires_at, NOW, max_days=max_days)
    else:
        with pytest.raises(InvalidValue, match="30 days"):
            check_lifetime(expires_at, NOW, max_days=max_days)


def test_a_user_may_grant_only_scopes_of_their_role() -> None:
    require_not_wider_than_actor(ALICE, scopes=frozenset(KeyScope), networks=())
    with pytest.raises(Forbidden):
        require_not_wider_than_actor(
            replace(ALICE, role=Role.BILLING), scopes=frozenset({KeyScope.KEYS_READ}), networks=()
        )


@pytest.mark.parametrize(
    "scopes",
    [{KeyScope.POLICIES_WRITE}, {KeyScope.USAGE_READ}, {KeyScope.INFERENCE}, {KeyScope.FIM}],
)
def test_a_key_cannot_grant_scopes_that_it_lacks(scopes: set[KeyScope]) -> None:
    creator = key_actor(KeyScope.KEYS_WRITE, KeyScope.CHAT)

    with pytest.raises(Forbidden):
        require_not_wider_than_actor(creator, scopes=frozenset(scopes), networks=())


def test_a_key_can_grant_scopes_that_its_own_scopes_include() -> None:
    # `keys:write` includes `keys:read`, and `inference` includes the scope of each mode.
    creator = key_actor(KeyScope.KEYS_WRITE, KeyScope.INFERENCE)

    require_not_wider_than_actor(
        creator, scopes=frozenset({KeyScope.KEYS_READ, KeyScope.CHAT}), networks=()
    )


@pytest.mark.parametrize("networks", [(), ("198.51.100.0/24",), ("192.0.0.0/16",)])
def test_a_key_cannot_grant_wider_networks(networks: tuple[str, ...]) -> None:
    creator = key_actor(KeyScope.KEYS_WRITE, networks=("192.0.2.0/24",))

    with pytest.raises(Forbidden):
        require_not_wider_than_actor(
            creator, scopes=frozenset({KeyScope.KEYS_READ}), networks=networks
        )


@pytest.mark.parametrize("expires_at", [None, NOW + timedelta(days=2)])
def test_a_key_cannot_create_one_that_expires_later(expires_at: datetime | None) -> None:
    creator = key_actor(KeyScope.KEYS_WRITE, expires_at=NOW + timedelta(days=1))

    require_no_later_expiry_than_actor(creator, NOW + timedelta(days=1))
    with pytest.raises(Forbidden):
        require_no_later_expiry_than_actor(creator, expires_at)
