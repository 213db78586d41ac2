"""Tombstones: the IDs of destroyed encryption keys and of erased users and tenants.

A restore of a database backup reads them, and erases again what they name. They are empty objects
in a store that no database backup contains. A tombstone is written after the commit that destroys a
key or requests an erasure. It is never deleted.

    CARET_TOMBSTONE_STORAGE/README           marks the store, so that a wrong location is noticed
                            <tenant>/<name>  a tombstone; the module that writes it chooses the name

If the store is down or the process is killed, a tombstone is missing. An hourly task writes missing
tombstones.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from django.core.files.base import ContentFile
from django.core.files.storage import Storage, storages
from django.db import transaction

from caret.foundation.ids import TenantId

STORAGE: Final = "destroyed_keys"  # the store's name in Django's STORAGES
# The hourly task checks the erasures of this period. If the store is down, each run of the task
# fails. So operators notice an outage long before it has lasted for this period.
LOOKBACK: Final = timedelta(days=14)
_README: Final = "README"
_README_TEXT: Final = b"Never clear this: see platform/docs/backup.md of Caret.\n"


class WrongStore(Exception):
    """The configured store is empty or missing. The text is for the operator."""


def write_tombstones_on_commit(tenant_id: TenantId, names: Iterable[str]) -> None:
    """Write tombstones after the commit.

    Call it in the transaction that destroys the keys or requests the erasure. If the store is down,
    the transaction stays committed, and no error is raised.
    """
    name_list = list(names)
    if name_list:
        transaction.on_commit(lambda: write_tombstones(tenant_id, name_list), robust=True)


def write_tombstones(tenant_id: TenantId, names: Iterable[str]) -> int:
    """Write the missing tombstones, and return how many were missing.

    Raises errors of the storage.
    """
    store, num_written = _get_storage(), 0
    for name in names:
        path = f"{tenant_id}/{name}"
        if not store.exists(path):
            store.save(path, ContentFile(b""))
            num_written += 1
    return num_written


def list_tombstones(tenant_id: TenantId) -> list[str]:
    """List the names of a tenant's tombstones.

    Callers must ignore names that they do not know: if two processes write the same tombstone at
    once, the store can get a second file with a changed name. Raises errors of the storage.
    """
    try:
        _, names = _get_storage().listdir(str(tenant_id))
    except FileNotFoundError:
        return []
    return sorted(names)


def initialize_store() -> None:
    """Mark the store with a README, so that a restore recognises the store.

    Raises errors of the storage.
    """
    if not _get_storage().exists(_README):
        _get_storage().save(_README, ContentFile(_README_TEXT))


def require_store() -> None:
    """Check that the configured store is not empty.

    Raises WrongStore, and errors of the storage.
    """
    try:
        folders, files = _get_storage().listdir("")
    except FileNotFoundError:
        folders, files = [], []
    if not folders and not files:
        raise WrongStore(
            "CARET_TOMBSTONE_STORAGE is empty or missing. Name the store that was in use: it"
            f" lists what was erased. If no store was in use, create the file {_README} in the"
            " location that the setting names."
        )


def _get_storage() -> Storage:
    return storages[STORAGE]
