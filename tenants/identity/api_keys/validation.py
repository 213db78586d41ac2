"""Validation of requests for keys. Pure.

A key never has more permissions than the actor that creates or rotates it. Otherwise a key that may
create keys could create a key with all permissions.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from caret.contracts.api_key import KeyKind
from caret.contracts.ip_allowlist import contains_all, parse_network
from caret.foundation.ids import UserId
from tenants.base.errors import Forbidden, InvalidValue
from tenants.base.validation.text import validate_printable
from tenants.identity.api_keys.scopes import DEFAULT_SCOPES, KeyScope, list_modes, list_permissions
from tenants.security.authorization.actor import Actor

MAX_NAME_CHARS: Final = 120
MAX_NETWORKS: Final = 20
MAX_LIFETIME: Final = timedelta(days=3_660)  # ten years


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """A request for a new key."""

    kind: KeyKind
    owner_id: UserId | None  # a member; None if and only if it is a service key
    name: str
    expires_at: datetime | None  # None: never
    scopes: frozenset[KeyScope] = DEFAULT_SCOPES
    networks: tuple[str, ...] = ()  # networks that the key may be used from; empty: any
    is_playground: bool = False  # see tenants.identity.api_keys.playground
    is_device: bool = False  # see tenants.identity.own_keys.device_requests


def validate_key_request(new: KeyRequest, now: datetime) -> KeyRequest:
    """Return the request with its name and networks in normalized form. Raises InvalidValue."""
    name = new.name.strip()
    if not 1 <= len(name) <= MAX_NAME_CHARS:
        raise InvalidValue(
            "name", "Enter a key name of 1 to {most} characters.", most=MAX_NAME_CHARS
        )
    validate_printable("name", name)
    if (new.owner_id is None) != (new.kind is KeyKind.SERVICE):
        raise InvalidValue("owner_id", "Only service keys have no owner. All other keys need one.")
    check_expiry(new.expires_at, now)
    check_scopes(new.scopes, new.kind)
    return replace(new, name=name, networks=check_networks(new.networks))


def check_expiry(expires_at: datetime | None, now: datetime) -> None:
    """Check that the key expires in the future, within MAX_LIFETIME. Raises InvalidValue."""
    if expires_at is not None and not now < expires_at <= now + MAX_LIFETIME:
        raise InvalidValue(
            "expires_at", "Choose an expiry date in the future, at most ten years from now."
        )


def check_lifetime(expires_at: datetime | None, now: datetime, *, max_days: int | None) -> None:
    """Check the policy's maximum lifetime, `max_days`; None: no maximum. Raises InvalidValue."""
    if max_days is None:
        return
    latest = now + timedelta(days=max_days)
    if expires_at is None or expires_at > latest:
        raise InvalidValue("expires_at", "Your policy limits keys to {most} days.", most=max_days)


def check_scopes(scopes: frozenset[KeyScope], kind: KeyKind) -> None:
    """Check that the scopes suit the kind of key. Raises InvalidValue."""
    if not scopes:
        raise InvalidValue("scopes", "Select at least one scope.")
    if list_permissions(scopes) and kind is not KeyKind.SERVICE:
        raise InvalidValue("scopes", "Only service keys can have REST API scopes.")


def check_networks(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the networks in canonical form, without duplicates. Raises InvalidValue."""
    networks = tuple(texts)
    if len(networks) > MAX_NETWORKS:
        raise InvalidValue("networks", "Enter at most {most} networks.", most=MAX_NETWORKS)
    try:
        return tuple(dict.fromkeys(str(parse_network(text)) for text in networks))
    except ValueError as error:
        raise InvalidValue(
            "networks", "Enter networks such as 192.0.2.0/24, without host bits."
        ) from error


def require_not_wider_than_actor(
    actor: Actor, *, scopes: frozenset[KeyScope], networks: tuple[str, ...]
) -> None:
    """Check that the key gets no permissions, modes or networks that the actor lacks.

    Raises Forbidden.
    """
    if not all(actor.has_permission(permission) for permission in list_permissions(scopes)):
        raise Forbidden("You cannot give a key permissions that you do not have.")
    grant = actor.grant
    if grant is not None and not list_modes(scopes) <= grant.modes:
        raise Forbidden("A key cannot create a key with scopes that it does not have.")
    if grant is not None and not contains_all(grant.networks, networks):
        raise Forbidden("A key cannot create a key for networks that it is not allowed to use.")


def require_current_secret(actor: Actor) -> None:
    """Check that the actor, if it is a key, has presented its current secret.

    Otherwise a thief of the old secret could create a key that outlives the rotation. Raises
    Forbidden.
    """
    if actor.grant is not None and actor.grant.is_superseded:
        raise Forbidden(
            "The old secret of a rotated key cannot create or rotate keys. Use the new secret."
        )


def require_no_later_expiry_than_actor(actor: Actor, expires_at: datetime | None) -> None:
    """Check that a key does not expire later than the key that creates it. Raises Forbidden."""
    end = None if actor.grant is None else actor.grant.expires_at
    if end is not None and (expires_at is None or expires_at > end):
        raise Forbidden("A key cannot create a key that expires later than itself.")
