"""Back up, lose all data, restore: sealed content can be opened, shredded content cannot.

Tombstones record destroyed keys outside of the database, so that a restore destroys them again.
"""

import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.sessions.models import Session
from django.core.files.storage import storages
from django.core.management import CommandError
from django.db import DatabaseError, connections
from django.utils import timezone

from caret.foundation.crypto.aead import DecryptionFailed
from caret.foundation.postgres.roles import find_rls_bypasses
from caret.foundation.postgres.tenant_scope import tenant_scope
from caret.local.databases.credentials import DATABASE
from console.sign_in.sessions.session_store import SessionStore
from tenants.base import tombstones
from tenants.base.tombstones import initialize_store
from tenants.models import (
    AuditEntry,
    DataKey,
    Membership,
    TenantKey,
)
from tenants.privacy.content_capture.erasure import build_key_scope
from tenants.security.encryption import destroyed_keys
from tenants.security.encryption.errors import KeyDestroyed
from tenants.security.encryption.operations import shred_scope, shred_tenant
from tenants.security.encryption.rotation import rotate_tenant_keys
from tests.integration.content_capture.backup_restore import (
    back_up,
    empty_database,
    open_contents,
    replay_erasures,
    restore,
)
from tests.integration.content_capture.consenting_tenant import ConsentingTenant
from tests.stack.services import Services

SECRET = "planted secret"


def test_a_restore_brings_back_the_data_without_sessions(
    services: Services,
    backup: tuple[Path, Path],
    acme: ConsentingTenant,
    globex: ConsentingTenant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    acme.give_consent(acme.company.developer)
    acme.capture(acme.company.developer, SECRET)
    SessionStore().create()
    back_up(backup)

    with empty_database(services, monkeypatch):
        output = restore(backup)
        contents = open_contents(acme.company)
        num_sessions = Session.objects.count()
        rls_bypasses = find_rls_bypasses(connections["default"])
        with tenant_scope(globex.company.tenant_id):
            visible_tenant_ids = set(Membership.objects.values_list("tenant_id", flat=True))
        # Row-level security is restored, too. Without a tenant scope, it compares the tenant IDs of
        # rows with "", which is no UUID, so the query fails.
        with pytest.raises(DatabaseError, match="uuid"):
            AuditEntry.objects.count()

    assert "0 encryption keys were destroyed again, 0 erasures" in output
    assert re.search(r"last audit entry \(\d{4}-\d\d-\d\d \d\d:\d\d UTC\) are lost, legal", output)
    assert SECRET in contents[0].decode()
    assert rls_bypasses == []
    assert num_sessions == 0
    assert {str(tenant_id) for tenant_id in visible_tenant_ids} == {globex.company.tenant_id}


def test_a_failed_dump_of_the_keys_leaves_no_backup(backup: tuple[Path, Path]) -> None:
    data, keys = backup
    keys.write_text("a file that already exists")  # a dump never overwrites a file

    with pytest.raises(CommandError, match="No backup was made"):
        back_up(backup)

    assert not data.exists()


def test_sealed_data_cannot_be_opened_without_the_keys_backup(
    services: Services,
    backup: tuple[Path, Path],
    acme: ConsentingTenant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    acme.give_consent(acme.company.developer)
    acme.capture(acme.company.developer, SECRET)
    with tenant_scope(acme.company.tenant_id):
        num_data_keys, num_tenant_keys = DataKey.objects.count(), TenantKey.objects.count()
    back_up(backup)

    with empty_database(services, monkeypatch):
        restore((backup[0], None))
        with tenant_scope(acme.company.tenant_id):
            num_restored_keys = DataKey.objects.count() + TenantKey.objects.count()
        with pytest.raises(DecryptionFailed):
            open_contents(acme.company)

    assert num_data_keys > 0
    assert num_tenant_keys > 0
    assert num_restored_keys == 0


@pytest.mark.parametrize("whole_tenant", [False, True], ids=["one user", "whole tenant"])
def test_data_shredded_after_the_backup_stays_shredded(
    services: Services,
    backup: tuple[Path, Path],
    acme: ConsentingTenant,
    globex: ConsentingTenant,
    monkeypatch: pytest.MonkeyPatch,
    whole_tenant: bool,
) -> None:
    for tenant in (acme, globex):
        tenant.give_consent(tenant.company.developer)
        tenant.capture(tenant.company.developer, SECRET)
    back_up(backup)
    tenant_id, now = acme.company.tenant_id, timezone.now()
    if whole_tenant:
        shredded = shred_tenant(tenant_id=tenant_id, now=now)
    else:
        scope = build_key_scope(acme.company.developer.user_id)
        shredded = shred_scope(tenant_id=tenant_id, scope=scope, now=now)

    with empty_database(services, monkeypatch):
        output = restore(backup)
        with pytest.raises(KeyDestroyed):
            open_contents(acme.company)
        globex_contents = open_contents(globex.company)
        with tenant_scope(tenant_id):
            (entry,) = AuditEntry.objects.filter(action="keys.destroyed_again")

    assert f"{len(shredded)} encryption keys were destroyed again" in output
    assert SECRET in globex_contents[0].decode()
    assert entry.after == {"keys": len(shredded)}


def test_a_restore_does_not_destroy_a_key_that_rotation_replaced(
    services: Services,
    backup: tuple[Path, Path],
    acme: ConsentingTenant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    acme.give_consent(acme.company.developer)
    acme.capture(acme.company.developer, SECRET)
    back_up(backup)
    next_day = timezone.now() + timedelta(days=1)
    rotation = rotate_tenant_keys(
        tenant_id=acme.company.tenant_id, now=next_day, older_than=next_day
    )
    # Must write none for the tenant key that rotation replaced: the backup needs this key.
    destroyed_keys.write_missing_key_tombstones(now=next_day)

    with empty_database(services, monkeypatch):
        restore(backup)
        contents = open_contents(acme.company)

    assert rotation.new_tenant_keys == 1
    assert SECRET in contents[0].decode()


def test_a_restore_is_refused_without_the_tombstone_store(
    services: Services,
    backup: tuple[Path, Path],
    tombstone_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    back_up(backup)
    (tombstone_folder / "README").unlink()  # the mark by which a restore recognizes the store

    with empty_database(services, monkeypatch):
        with pytest.raises(CommandError, match="CARET_TOMBSTONE_STORAGE"):
            restore(backup)
        tombstone_folder.rmdir()
        with pytest.raises(CommandError, match="CARET_TOMBSTONE_STORAGE"):
            restore(backup)
        initialize_store()
        assert "Restored." in restore(backup)


def test_a_restore_is_refused_if_the_application_uses_another_database(
    services: Services, backup: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(backup)

    with empty_database(services, monkeypatch):
        connection = connections["default"]
        connection.close()
        connection.settings_dict["NAME"] = DATABASE  # restored is CARET_BACKUP_DATABASE_URL
        with pytest.raises(CommandError, match="another database"):
            restore(backup)


def test_a_command_completes_the_erasures_of_an_interrupted_restore(
    services: Services,
    backup: tuple[Path, Path],
    acme: ConsentingTenant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    acme.give_consent(acme.company.developer)
    acme.capture(acme.company.developer, SECRET)
    back_up(backup)
    scope = build_key_scope(acme.company.developer.user_id)
    shred_scope(tenant_id=acme.company.tenant_id, scope=scope, now=timezone.now())
    storage = storages[tombstones.STORAGE]

    with empty_database(services, monkeypatch):
        list_folder = type(storage).listdir
        with monkeypatch.context() as context:
            # The store fails after the restore has checked that its root folder exists.
            context.setattr(
                type(storage),
                "listdir",
                lambda self, path: _raise_unreachable() if path else list_folder(self, ""),
            )
            with pytest.raises(CommandError, match=r"manage\.py replay_erasures"):
                restore(backup)
        output = replay_erasures()
        with pytest.raises(KeyDestroyed):
            open_contents(acme.company)

    assert "1 encryption keys were destroyed again" in output


def test_a_tombstone_that_could_not_be_stored_is_stored_later(
    acme: ConsentingTenant, tombstone_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme.give_consent(acme.company.developer)
    acme.capture(acme.company.developer, SECRET)
    storage = storages[tombstones.STORAGE]
    scope, now = build_key_scope(acme.company.developer.user_id), timezone.now()
    with monkeypatch.context() as context:
        context.setattr(type(storage), "save", _raise_unreachable)
        shred_scope(tenant_id=acme.company.tenant_id, scope=scope, now=now)
    files_before = [path.name for path in tombstone_folder.rglob("*")]

    num_written = destroyed_keys.write_missing_key_tombstones(now=now)

    assert files_before == ["README"]  # the store itself, without a tombstone
    assert num_written >= 1  # also those of earlier tests' tenants
    assert destroyed_keys.write_missing_key_tombstones(now=now) == 0


def test_backups_are_private_and_never_overwrite_files(backup: tuple[Path, Path]) -> None:
    back_up(backup)

    assert [file.stat().st_mode & 0o777 for file in backup] == [0o600, 0o600]
    with pytest.raises(CommandError, match="No backup was made"):
        back_up(backup)


def test_data_and_keys_must_be_in_different_folders(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="another folder than --data"):
        back_up((tmp_path / "data", tmp_path / "keys"))


def test_a_restore_needs_an_empty_database(backup: tuple[Path, Path]) -> None:
    back_up(backup)

    with pytest.raises(CommandError, match="into an empty one"):
        restore(backup)


def _raise_unreachable(*_: object, **__: object) -> str:
    raise OSError("the store is unreachable")
