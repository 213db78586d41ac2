"""Back up, lose all data, restore: sealed content can be opened, shredded content cannot."""

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
from console.sign_in.session_store import SessionStore
from tenants.base import tombstones as store_of_notes
from tenants.base.tombstones import initialize_store
from tenants.models import (
    AuditEntry,
    DataKey,
    Membership,
    TenantKey,
)
from tenants.privacy.content_capture.erasure import scope_of
from tenants.security.encryption import destroyed_keys
from tenants.security.encryption.errors import KeyDestroyed
from tenants.security.encryption.operations import shred_scope, shred_tenant
from tenants.security.encryption.rotation import rotate_tenant_keys
from tests.integration.content_capture.backup_restore import (
    back_up,
    destroy_again,
    lost,
    opened,
    restore,
)
from tests.integration.content_capture.consenting_tenant import Willing
from tests.stack.services import Services

SECRET = "planted secret of acme"


def test_what_was_lost_is_there_again(
    services: Services,
    backup: tuple[Path, Path],
    acme: Willing,
    globex: Willing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    acme.agree(acme.company.developer)
    acme.keep(acme.company.developer, SECRET)
    SessionStore().create()
    back_up(backup)

    with lost(services, monkeypatch):
        told = restore(backup)
        contents = opened(acme.company)
        num_sessions = Session.objects.count()
        powers = find_rls_bypasses(connections["default"])
        with tenant_scope(globex.company.tenant_id):
            seen = set(Membership.objects.values_list("tenant_id", flat=True))
        with pytest.raises(DatabaseError, match="uuid"):
            AuditEntry.objects.count()

    assert "0 keys were destroyed again, 0 erasures" in told
    assert re.search(r"last audit entry \(\d{4}-\d\d-\d\d \d\d:\d\d UTC\) are lost, legal", told)
    assert SECRET in contents[0].decode()
    assert powers == []
    assert num_sessions == 0
    assert {str(each) for each in seen} == {globex.company.tenant_id}


def test_data_without_keys_opens_nothing(
    services: Services,
    backup: tuple[Path, Path],
    acme: Willing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    acme.agree(acme.company.developer)
    acme.keep(acme.company.developer, SECRET)
    with tenant_scope(acme.company.tenant_id):
        wrapped = [bytes(key.wrapped or b"") for key in DataKey.objects.all()]
        sealed = [bytes(key.wrapped or b"") for key in TenantKey.objects.all()]
    back_up(backup)

    with lost(services, monkeypatch):
        restore((backup[0], None))
        with tenant_scope(acme.company.tenant_id):
            num_keys = DataKey.objects.count() + TenantKey.objects.count()
        with pytest.raises(DecryptionFailed):
            opened(acme.company)

    assert wrapped
    assert sealed
    assert num_keys == 0


@pytest.mark.parametrize("whole_tenant", [False, True])
def test_what_was_shredded_since_stays_shredded(
    services: Services,
    backup: tuple[Path, Path],
    acme: Willing,
    globex: Willing,
    monkeypatch: pytest.MonkeyPatch,
    whole_tenant: bool,
) -> None:
    for company in (acme, globex):
        company.agree(company.company.developer)
        company.keep(company.company.developer, SECRET)
    back_up(backup)
    tenant_id, now = acme.company.tenant_id, timezone.now()
    if whole_tenant:
        shredded = shred_tenant(tenant_id=tenant_id, now=now)
    else:
        scope = scope_of(acme.company.developer.user_id)
        shredded = shred_scope(tenant_id=tenant_id, scope=scope, now=now)

    with lost(services, monkeypatch):
        told = restore(backup)
        with pytest.raises(KeyDestroyed):
            opened(acme.company)
        neighbours = opened(globex.company)
        with tenant_scope(tenant_id):
            (entry,) = AuditEntry.objects.filter(action="keys.destroyed_again")

    assert f"{len(shredded)} keys were destroyed again" in told
    assert SECRET in neighbours[0].decode()
    assert entry.after == {"keys": len(shredded)}


def test_a_key_that_was_replaced_is_not_shredded(
    services: Services,
    backup: tuple[Path, Path],
    acme: Willing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    acme.agree(acme.company.developer)
    acme.keep(acme.company.developer, SECRET)
    back_up(backup)
    later = timezone.now() + timedelta(days=1)
    rotate_tenant_keys(tenant_id=acme.company.tenant_id, now=later, older_than=later)
    destroyed_keys.write_missing(now=later)

    with lost(services, monkeypatch):
        restore(backup)
        contents = opened(acme.company)

    assert SECRET in contents[0].decode()


def test_nothing_is_restored_without_the_store_that_says_what_is_gone(
    services: Services,
    backup: tuple[Path, Path],
    noted: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    back_up(backup)
    (noted / "README").unlink()

    with lost(services, monkeypatch):
        with pytest.raises(CommandError, match="CARET_TOMBSTONE_STORAGE"):
            restore(backup)
        noted.rmdir()
        with pytest.raises(CommandError, match="CARET_TOMBSTONE_STORAGE"):
            restore(backup)
        initialize_store()
        assert "Restored." in restore(backup)


def test_nothing_is_restored_while_the_application_has_another_database(
    services: Services, backup: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    back_up(backup)

    with lost(services, monkeypatch):
        connection = connections["default"]
        connection.close()
        connection.settings_dict["NAME"] = DATABASE
        with pytest.raises(CommandError, match="another database"):
            restore(backup)


def test_one_that_is_stopped_before_it_destroys_is_ended_by_a_command(
    services: Services,
    backup: tuple[Path, Path],
    acme: Willing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    acme.agree(acme.company.developer)
    acme.keep(acme.company.developer, SECRET)
    back_up(backup)
    scope = scope_of(acme.company.developer.user_id)
    shred_scope(tenant_id=acme.company.tenant_id, scope=scope, now=timezone.now())
    storage = storages[store_of_notes.STORAGE]

    with lost(services, monkeypatch):
        listdir = type(storage).listdir
        with monkeypatch.context() as away:
            # The store is reachable at the first check.
            away.setattr(
                type(storage), "listdir", lambda self, path: _away() if path else listdir(self, "")
            )
            with pytest.raises(CommandError, match=r"manage\.py replay_erasures"):
                restore(backup)
        told = destroy_again()
        with pytest.raises(KeyDestroyed):
            opened(acme.company)

    assert "1 keys were destroyed again" in told


def test_what_was_not_noted_at_once_is_noted_later(
    acme: Willing, noted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme.agree(acme.company.developer)
    acme.keep(acme.company.developer, SECRET)
    storage = storages[store_of_notes.STORAGE]
    scope, now = scope_of(acme.company.developer.user_id), timezone.now()
    with monkeypatch.context() as away:
        away.setattr(type(storage), "save", _away)
        shred_scope(tenant_id=acme.company.tenant_id, scope=scope, now=now)
    before = [path.name for path in noted.rglob("*")]

    num_noted = destroyed_keys.write_missing(now=now)

    assert before == ["README"]
    assert num_noted >= 1
    assert destroyed_keys.write_missing(now=now) == 0


def test_backups_are_their_owners_alone_and_replace_nothing(backup: tuple[Path, Path]) -> None:
    back_up(backup)

    assert [file.stat().st_mode & 0o777 for file in backup] == [0o600, 0o600]
    with pytest.raises(CommandError, match="No backup was made"):
        back_up(backup)


def test_data_and_keys_lie_apart(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="a folder elsewhere"):
        back_up((tmp_path / "data", tmp_path / "keys"))


def test_nothing_is_restored_over_what_is_there(backup: tuple[Path, Path]) -> None:
    back_up(backup)

    with pytest.raises(CommandError, match="into an empty one"):
        restore(backup)


def _away(*_: object, **__: object) -> str:
    raise OSError("the store is unreachable")
