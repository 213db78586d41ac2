from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import Settings

    from tests.integration.content_capture.consenting_tenant import Willing


@pytest.fixture(autouse=True)
def _database(database: None) -> None:
    """All of these tests reach Postgres and Valkey."""
    # Imported here: this file may be read before Django is set up, models after.
    from caret.contracts.captured_content import CONTENT
    from tenants.base.redis_connection import connect

    connect().delete(CONTENT)  # what earlier tests left


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Settings) -> Path:
    """The object store of one test."""
    from caret.settings.object_storage import storage_from

    stored = storage_from("CARET_CONTENT_STORAGE", str(tmp_path / "telemetry"))
    settings.STORAGES = {**settings.STORAGES, "telemetry": stored}
    return tmp_path / "telemetry"


@pytest.fixture(autouse=True)
def noted(tmp_path: Path, settings: Settings) -> Path:
    """Where a test notes what is destroyed."""
    from caret.settings.object_storage import storage_from
    from tenants.base.tombstones import initialize_store

    folder = tmp_path / "destroyed"
    stored = storage_from("CARET_TOMBSTONE_STORAGE", str(folder))
    settings.STORAGES = {**settings.STORAGES, "destroyed_keys": stored}
    initialize_store()
    return folder


@pytest.fixture
def backup(tmp_path: Path) -> tuple[Path, Path]:
    """Where data and keys go."""
    (tmp_path / "data").mkdir()
    (tmp_path / "keys").mkdir()
    return tmp_path / "data" / "caret.dump", tmp_path / "keys" / "caret.dump"


@pytest.fixture
def acme() -> Willing:
    from tests.integration.content_capture.consenting_tenant import make_willing

    return make_willing("acme")


@pytest.fixture
def globex() -> Willing:
    """The neighbour, who is as willing."""
    from tests.integration.content_capture.consenting_tenant import make_willing

    return make_willing("globex")
