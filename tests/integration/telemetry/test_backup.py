"""Back up, lose all, restore: what was sealed opens, what was shredded does not."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from io import StringIO
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from django.contrib.sessions.backends.db import SessionStore
from django.contrib.sessions.models import Session
from django.core.files.storage import storages
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connections
from django.utils import timezone
from pytest_django import Settings

from caret.embedded.credentials import DATABASE, SUPERUSER, password_of
from caret.embedded.postgres_cluster import programs_of
from caret.foundation.postgres.roles import find_powers
from caret.foundation.postgres.tenancy import tenant
from caret.foundation.sealing import SealBroken
from caret.settings.stores import storage_from
from tenants.encryption import destroyed
from tenants.encryption.errors import KeyDestroyed
from tenants.encryption.held import held_keys
from tenants.encryption.operations import shred_scope, shred_tenant
from tenants.encryption.queries import open_sealed
from tenants.encryption.rotation import rotate_tenant
from tenants.models import AuditEntry, DataKey, Membership, TelemetryObject, TenantKey
from tenants.telemetry import store
from tenants.telemetry.erasure import scope_of
from tests.cast import Company
from tests.integration.telemetry.willing import Willing
from tests.stack.services import Services

SECRET = "planted secret of acme"


@pytest.fixture(autouse=True)
def noted(tmp_path: Path, settings: Settings) -> Path:
    """Where destroyed keys are noted."""
    folder = tmp_path / "destroyed"
    stored = storage_from("CARET_DESTROYED_KEYS_STORE", str(folder))
    settings.STORAGES = {**settings.STORAGES, "destroyed_keys": stored}
    return folder


@pytest.fixture
def backup(tmp_path: Path) -> tuple[Path, Path]:
    """Where data and keys go."""
    (tmp_path / "data").mkdir()
    (tmp_path / "keys").mkdir()
    return tmp_path / "data" / "caret.dump", tmp_path / "keys" / "caret.dump"


def back_up(files: tuple[Path, Path]) -> None:
    call_command("backup", data=files[0], keys=files[1], stdout=StringIO())


@contextmanager
def lost(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty database in place of ours, which both roles know."""
    name = f"restored_{secrets.token_hex(4)}"
    host, password = services.paths.sockets, password_of(services.paths, SUPERUSER)
    admin = psycopg.connect(
        host=str(host), dbname=DATABASE, user=SUPERUSER, password=password, autocommit=True
    )
    admin.execute(f"CREATE DATABASE {name} OWNER caret_owner".encode())
    address = f"postgresql://{SUPERUSER}:{password}@/{name}?host={quote(str(host), safe='')}"
    monkeypatch.setenv("CARET_BACKUP_DATABASE_URL", address)
    monkeypatch.setenv("PATH", f"{programs_of(services.paths)}:{os.environ['PATH']}")
    connection = connections["default"]
    connection.close()
    connection.settings_dict["NAME"] = name
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = DATABASE
        held_keys_forget()
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        admin.close()


def held_keys_forget() -> None:
    held_keys._keys.clear()


def restore(files: tuple[Path, Path | None]) -> str:
    held_keys_forget()
    told = StringIO()
    call_command("restore", data=files[0], keys=files[1], stdout=told)
    return told.getvalue()


def opened(company: Company) -> list[bytes]:
    with tenant(company.tenant_id):
        ids = list(TelemetryObject.objects.order_by("id").values_list("id", flat=True))
    tenant_id = company.tenant_id
    return [
        open_sealed(tenant_id, place=store.place(each), sealed=store.get(tenant_id, each))
        for each in ids
    ]


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
        powers = find_powers(connections["default"])
        with tenant(globex.company.tenant_id):
            seen = set(Membership.objects.values_list("tenant_id", flat=True))
        with pytest.raises(DatabaseError, match="uuid"):
            AuditEntry.objects.count()

    assert "Restored. 0 keys" in told
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
    with tenant(acme.company.tenant_id):
        wrapped = [bytes(key.wrapped or b"") for key in DataKey.objects.all()]
        sealed = [bytes(key.wrapped or b"") for key in TenantKey.objects.all()]
    back_up(backup)

    with lost(services, monkeypatch):
        restore((backup[0], None))
        with tenant(acme.company.tenant_id):
            num_keys = DataKey.objects.count() + TenantKey.objects.count()
        with pytest.raises(SealBroken):
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
        with tenant(tenant_id):
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
    rotate_tenant(tenant_id=acme.company.tenant_id, now=later, older_than=later)
    destroyed.note_missed(now=later)

    with lost(services, monkeypatch):
        restore(backup)
        contents = opened(acme.company)

    assert SECRET in contents[0].decode()


def test_what_was_not_noted_at_once_is_noted_later(
    acme: Willing, noted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    acme.agree(acme.company.developer)
    acme.keep(acme.company.developer, SECRET)
    storage = storages[destroyed.STORAGE]
    scope, now = scope_of(acme.company.developer.user_id), timezone.now()
    with monkeypatch.context() as away:
        away.setattr(type(storage), "save", _away)
        shred_scope(tenant_id=acme.company.tenant_id, scope=scope, now=now)
    before = list(noted.rglob("*"))

    num_noted = destroyed.note_missed(now=now)

    assert before == []
    assert num_noted >= 1
    assert destroyed.note_missed(now=now) == 0


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
    raise OSError("the store is away")
