from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import Settings

    from tests.integration.content_capture.consenting_tenant import ConsentingTenant


@pytest.fixture(autouse=True)
def _database(database: None) -> None:
    """Give all tests of this folder Postgres and Valkey, with no content in the queue."""
    # Imported here: pytest may load this file before Django is set up.
    from caret.contracts.captured_content import CONTENT
    from tenants.base.redis_connection import connect_to_redis

    connect_to_redis().delete(CONTENT)  # left by earlier tests


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Settings) -> Path:
    """Store content in a folder of this test, and return the folder."""
    from caret.settings.service_urls import storage_from

    storage = storage_from("CARET_CONTENT_STORAGE", str(tmp_path / "content"))
    settings.STORAGES = {**settings.STORAGES, "content": storage}
    return tmp_path / "content"


@pytest.fixture(autouse=True)
def tombstone_folder(tmp_path: Path, settings: Settings) -> Path:
    """Store tombstones in a folder of this test, and return the folder.

    A tombstone is a file that records a destroyed encryption key or an erasure. Backups of the
    database do not contain it.
    """
    from caret.settings.service_urls import storage_from
    from tenants.base.tombstones import initialize_store

    folder = tmp_path / "destroyed"
    storage = storage_from("CARET_TOMBSTONE_STORAGE", str(folder))
    settings.STORAGES = {**settings.STORAGES, "destroyed_keys": storage}
    initialize_store()
    return folder


@pytest.fixture
def backup(tmp_path: Path) -> tuple[Path, Path]:
    """Return the paths of two files of a backup: the data, and the encryption keys."""
    (tmp_path / "data").mkdir()
    (tmp_path / "keys").mkdir()
    return tmp_path / "data" / "caret.dump", tmp_path / "keys" / "caret.dump"


@pytest.fixture
def acme() -> ConsentingTenant:
    """A tenant whose policy allows content capture and training. No user has consented yet."""
    from tests.integration.content_capture.consenting_tenant import make_consenting_tenant

    return make_consenting_tenant("acme")


@pytest.fixture
def globex() -> ConsentingTenant:
    """Another tenant with the same policy. No user has consented yet."""
    from tests.integration.content_capture.consenting_tenant import make_consenting_tenant

    return make_consenting_tenant("globex")
