"""Steps of the backup tests: back up, replace the database by an empty one, restore.

`files` are the two files of a backup: the data, and the keys that open its sealed (encrypted)
content.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from django.core.management import call_command
from django.db import connections

from caret.foundation.postgres.tenant_scope import tenant_scope
from caret.local.databases.credentials import DATABASE, SUPERUSER, read_password
from caret.local.databases.postgres_cluster import find_postgres_programs
from tenants.models import ContentObject
from tenants.privacy.content_capture import object_store
from tenants.security.encryption.key_cache import key_cache
from tenants.security.encryption.queries import open_sealed
from tests.fixtures.companies import Company
from tests.stack.services import Services


def back_up(files: tuple[Path, Path]) -> None:
    call_command("backup", data=files[0], keys=files[1], stdout=StringIO())


@contextmanager
def empty_database(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replace the database by an empty one with the same roles until the block ends."""
    name = f"restored_{secrets.token_hex(4)}"
    host, password = services.paths.sockets, read_password(services.paths, SUPERUSER)
    admin = psycopg.connect(
        host=str(host), dbname=DATABASE, user=SUPERUSER, password=password, autocommit=True
    )
    admin.execute(f"CREATE DATABASE {name} OWNER caret_owner".encode())
    backup_url = f"postgresql://{SUPERUSER}:{password}@/{name}?host={quote(str(host), safe='')}"
    monkeypatch.setenv("CARET_BACKUP_DATABASE_URL", backup_url)
    # So that `backup` and `restore` find the programs of Postgres.
    monkeypatch.setenv("PATH", f"{find_postgres_programs(services.paths)}:{os.environ['PATH']}")
    connection = connections["default"]
    connection.close()
    connection.settings_dict["NAME"] = name
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = DATABASE
        clear_key_cache()
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
        admin.close()


def clear_key_cache() -> None:
    """Forget the decrypted keys of this process, so that each key is read from the database."""
    key_cache._keys.clear()


def restore(files: tuple[Path, Path | None]) -> str:
    """Restore a backup and return the output of the command.

    Without the file of keys (None), the sealed content stays unreadable.
    """
    clear_key_cache()
    output = StringIO()
    call_command("restore", data=files[0], keys=files[1], stdout=output)
    return output.getvalue()


def replay_erasures() -> str:
    """Repeat the erasures that tombstones name, and return the output of the command."""
    output = StringIO()
    call_command("replay_erasures", stdout=output)
    return output.getvalue()


def open_contents(company: Company) -> list[bytes]:
    """Return all captured content of the company, decrypted."""
    with tenant_scope(company.tenant_id):
        object_ids = list(ContentObject.objects.order_by("id").values_list("id", flat=True))
    tenant_id = company.tenant_id
    return [
        open_sealed(
            tenant_id,
            context=object_store.build_seal_context(object_id),
            envelope=object_store.read_object(tenant_id, object_id),
        )
        for object_id in object_ids
    ]
