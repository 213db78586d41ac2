"""Startup check: a process does not start unless its root keys can unwrap the stored tenant keys.

Each root key that wraps a tenant key has a row with a canary: a known text that the root key has
wrapped. Only the same root key can unwrap it.
"""

import os
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django.core import checks

from caret.foundation.crypto.aead import DecryptionFailed
from caret.foundation.environment import BadSetting
from caret.foundation.postgres import OWNER_ALIAS
from tenants.models import RootKeyUse
from tenants.security.encryption.errors import EncryptionFailed
from tenants.security.encryption.root_keys import RootKey, RootKeys, load_root_keys

_CANARY: Final = b"caret canary"
_BOUND_TO: Final = "1|keyring_root_key"  # the canary's context


class RootKeysUnusable(Exception):
    """Root keys cannot unwrap the stored tenant keys. The message says what to do."""


def record_root_key_use(root_key: RootKey, *, now: datetime) -> None:
    """Record that a root key wraps a tenant key, in the transaction that wraps the tenant key.

    The row stays locked until the commit, so that rotation cannot retire the root key meanwhile. A
    retired root key is in use again.
    """
    if not RootKeyUse.objects.filter(id=root_key.id).exists():
        canary = root_key.wrap(_CANARY, bound_to=_BOUND_TO)
        row = RootKeyUse(id=root_key.id, canary=canary, created_at=now)
        RootKeyUse.objects.bulk_create([row], ignore_conflicts=True)
    row = RootKeyUse.objects.select_for_update(no_key=True).get(id=root_key.id)
    if row.retired_at is not None:
        RootKeyUse.objects.filter(id=root_key.id).update(retired_at=None)


def require_root_keys() -> None:
    """Check that the root keys can unwrap the stored tenant keys. Raises RootKeysUnusable.

    One query. Wraps a random key with the current root key, and unwraps a canary with each root key
    in use. If a root key is in a KMS, each of these is a call to the KMS.
    """
    if problems := find_problems():
        raise RootKeysUnusable(" ".join(problems))


def find_problems() -> list[str]:
    """Return the reasons why tenant keys cannot be wrapped or unwrapped, as sentences."""
    try:
        keys = load_root_keys()
        _try_to_wrap(keys.current)
    except (EncryptionFailed, BadSetting) as error:
        return [f"The root key cannot be used: {error}"]
    in_use = RootKeyUse.objects.filter(retired_at=None).order_by("created_at", "id")
    return [problem for row in in_use if (problem := _find_problem(keys, row)) is not None]


@checks.register(checks.Tags.database)
def check_root_keys(
    *, databases: Sequence[str] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """Make `manage.py check --database default` fail if the root keys cannot be used."""
    # `migrate` runs this check for the owner's connection only. The table may not exist then.
    if not set(databases or ()) - {OWNER_ALIAS}:
        return []
    return [checks.Error(problem, id="caret.E002") for problem in find_problems()]


def _try_to_wrap(root_key: RootKey) -> None:
    root_key.wrap(os.urandom(32), bound_to=_BOUND_TO)


def _find_problem(keys: RootKeys, row: RootKeyUse) -> str | None:
    """Return why the row's root key cannot be used; None: the key unwraps its canary."""
    try:
        plaintext = keys.get(row.id).unwrap(bytes(row.canary), bound_to=_BOUND_TO)
    except DecryptionFailed:
        plaintext = b""
    except EncryptionFailed as error:
        return (
            f"Tenant keys are wrapped by a root key that cannot be used: {error} If the key"
            f" {row.id} is missing from CARET_ROOT_KEYS, add it after the key that wraps new keys."
            " Then `manage.py rotate_encryption_keys` wraps the tenant keys again."
        )
    if plaintext == _CANARY:
        return None
    return (
        f"The root key {row.id} does not open what it wrapped. Check that CARET_ROOT_SECRET and"
        " CARET_ROOT_KEYS belong to this database."
    )
