"""Notes of what a restored backup must not bring back, in a store that no backup of the database
holds. They are empty objects, each noted once what it says is committed; none is ever deleted.

    CARET_TOMBSTONE_STORAGE/README        it is this store, and not a mistyped one
                              <tenant>/...   what each note says, who writes it says

What was missed (the store was away, the process was killed) is noted by an hourly task.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages
from django.db import transaction

from caret.foundation.ids import TenantId

STORAGE: Final = "destroyed_keys"
# A store that is away for longer is noticed: each run of the task fails.
LOOKS_BACK: Final = timedelta(days=14)
_README: Final = "README"
_TEXT: Final = b"Never clear this: see platform/docs/backup.md of Caret.\n"


class WrongStore(Exception):
    """The text is for the operator."""


def write_on_commit(tenant_id: TenantId, names: Iterable[str]) -> None:
    """Call in the transaction that does what they say. That the store is away does not undo it."""
    held = list(names)
    if held:
        transaction.on_commit(lambda: write(tenant_id, held), robust=True)


def write(tenant_id: TenantId, names: Iterable[str]) -> int:
    """How many were missing. Raises what the storage raises."""
    store, num_noted = _storage(), 0
    for name in names:
        path = f"{tenant_id}/{name}"
        if not store.exists(path):
            store.save(path, ContentFile(b""))
            num_noted += 1
    return num_noted


def list_names(tenant_id: TenantId) -> list[str]:
    """Two who note one thing at once leave a second name, which says nothing. Raises what the
    storage raises."""
    try:
        _, names = _storage().listdir(str(tenant_id))
    except FileNotFoundError:
        return []
    return sorted(names)


def initialize_store() -> None:
    """So that a restore knows it. Raises what the storage raises."""
    if not _storage().exists(_README):
        _storage().save(_README, ContentFile(_TEXT))


def require_store() -> None:
    """Raises WrongStore for an empty one, and what the storage raises."""
    try:
        folders, files = _storage().listdir("")
    except FileNotFoundError:
        folders, files = [], []
    if not folders and not files:
        raise WrongStore(
            "CARET_TOMBSTONE_STORAGE is empty or not there. Name the one that was in use, which"
            f" says what was erased since. If there was none, put a file {_README} into it."
        )


def _storage() -> Storage:
    return storages[STORAGE]
