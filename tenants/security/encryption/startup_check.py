"""Whether the root keys that we have open what is stored; a process that lacks one does not start.

Each root key that wraps a tenant's key has a row with a canary; who opens it has the key.
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
from tenants.security.encryption.root_keys import RootKey, RootKeys, root_keys

_CANARY: Final = b"caret canary"
_BOUND_TO: Final = "1|keyring_root_key"


class RootKeysUnusable(Exception):
    """The text says what is wrong and what to do; it holds no key."""


def record_root_key_use(root_key: RootKey, *, now: datetime) -> None:
    """Call where a tenant's key is wrapped by it, in the same transaction. The row stays locked
    until then, so that rotation cannot find the key unused meanwhile."""
    if not RootKeyUse.objects.filter(id=root_key.id).exists():
        canary = root_key.wrap(_CANARY, bound_to=_BOUND_TO)
        row = RootKeyUse(id=root_key.id, canary=canary, created_at=now)
        RootKeyUse.objects.bulk_create([row], ignore_conflicts=True)
    row = RootKeyUse.objects.select_for_update(no_key=True).get(id=root_key.id)
    if row.retired_at is not None:
        RootKeyUse.objects.filter(id=root_key.id).update(retired_at=None)


def require_root_keys() -> None:
    """Raises RootKeysUnusable. One query; with a KMS a call or two."""
    if faults := find_problems():
        raise RootKeysUnusable(" ".join(faults))


def find_problems() -> list[str]:
    """Why tenants' keys could not be opened, as sentences."""
    try:
        keys = root_keys()
        _try_to_wrap(keys.current)
    except (EncryptionFailed, BadSetting) as error:
        return [f"The root key cannot be used: {error}"]
    in_use = RootKeyUse.objects.filter(retired_at=None).order_by("created_at", "id")
    return [fault for row in in_use if (fault := _fault(keys, row)) is not None]


@checks.register(checks.Tags.database)
def check_root_keys(
    *, databases: Sequence[str] | None = None, **_: Any
) -> list[checks.CheckMessage]:
    """`manage.py check --database default` fails without the root keys."""
    if not set(databases or ()) - {OWNER_ALIAS}:
        return []
    return [checks.Error(fault, id="caret.E002") for fault in find_problems()]


def _try_to_wrap(root_key: RootKey) -> None:
    root_key.wrap(os.urandom(32), bound_to=_BOUND_TO)


def _fault(keys: RootKeys, row: RootKeyUse) -> str | None:
    try:
        opened = keys.get(row.id).unwrap(bytes(row.canary), bound_to=_BOUND_TO)
    except DecryptionFailed:
        opened = b""
    except EncryptionFailed as error:
        return (
            f"Tenant keys are wrapped by a root key that cannot be used: {error} Add it to"
            " CARET_ROOT_KEYS, after the key that wraps new keys. Then"
            " `manage.py rotate_encryption_keys` wraps the tenant keys again."
        )
    return None if opened == _CANARY else f"The root key {row.id} does not open what it wrapped."
