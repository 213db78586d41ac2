"""Cache salts: requests share the entries of an engine's prefix cache only if their salts match.

A salt stands for a namespace of the cache.
"""

from caret.contracts.policy import Isolation
from inference.prefix_cache.namespace import CacheNamespaces
from tests.fakes.tenants import (
    ADA,
    ALICE,
    GLOBEX,
    ROOT_SECRET,
    make_policy,
    make_principal,
)

NAMESPACES = CacheNamespaces(ROOT_SECRET)
STRICT = make_policy(isolation=Isolation.STRICT)


def test_a_salt_is_64_hex_digits() -> None:
    salt = NAMESPACES.derive_salt(make_principal())

    assert len(salt) == 64
    assert set(salt) <= set("0123456789abcdef")


def test_a_salt_is_the_same_in_every_process() -> None:
    principal = make_principal()
    namespaces_of_another_process = CacheNamespaces(ROOT_SECRET)

    salt = NAMESPACES.derive_salt(principal)

    assert salt == namespaces_of_another_process.derive_salt(principal)


def test_a_salt_depends_on_the_root_secret() -> None:
    principal = make_principal()
    namespaces_of_another_secret = CacheNamespaces(bytes(32))

    salt = NAMESPACES.derive_salt(principal)

    assert salt != namespaces_of_another_secret.derive_salt(principal)


def test_tenants_never_share_a_namespace() -> None:
    our_principal, their_principal = make_principal(), make_principal(tenant_id=GLOBEX)

    assert NAMESPACES.derive_salt(our_principal) != NAMESPACES.derive_salt(their_principal)


def test_a_new_cache_epoch_gives_a_new_namespace() -> None:
    """Requests can no longer use the tenant's cached blocks."""
    before, after = make_principal(cache_epoch=0), make_principal(cache_epoch=1)

    assert NAMESPACES.derive_salt(before) != NAMESPACES.derive_salt(after)


def test_users_of_a_tenant_share_a_namespace() -> None:
    ada, alice = make_principal(user_id=ADA), make_principal(user_id=ALICE)

    assert NAMESPACES.derive_salt(ada) == NAMESPACES.derive_salt(alice)


def test_users_share_no_namespace_in_strict_isolation() -> None:
    ada = make_principal(user_id=ADA, policy=STRICT)
    alice = make_principal(user_id=ALICE, policy=STRICT)

    assert NAMESPACES.derive_salt(ada) != NAMESPACES.derive_salt(alice)


def test_the_keys_of_a_user_share_a_namespace_in_strict_isolation() -> None:
    laptop = make_principal(key_id="laptop", policy=STRICT)
    desktop = make_principal(key_id="desktop", policy=STRICT)

    assert NAMESPACES.derive_salt(laptop) == NAMESPACES.derive_salt(desktop)


def test_service_keys_share_no_namespace_in_strict_isolation() -> None:
    service = make_principal(user_id=None, key_id="service", policy=STRICT)
    other_service = make_principal(user_id=None, key_id="other-service", policy=STRICT)

    assert NAMESPACES.derive_salt(service) != NAMESPACES.derive_salt(other_service)


def test_strict_isolation_does_not_use_the_shared_namespace() -> None:
    shared, strict = make_principal(), make_principal(policy=STRICT)

    assert NAMESPACES.derive_salt(shared) != NAMESPACES.derive_salt(strict)
