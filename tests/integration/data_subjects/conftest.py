from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import Settings

    from tests.integration.data_subjects.traces import TracedTenant


@pytest.fixture(autouse=True)
def _database(database: None) -> None:
    """Give all tests of this folder Postgres and Valkey, without the work of earlier tests."""
    # Imported here: pytest may load this file before Django is set up.
    from django.utils import timezone

    from caret.contracts.captured_content import CONTENT
    from tenants.base.redis_connection import connect_to_redis
    from tenants.compliance.data_subjects.erasure_worker import run_due_erasures

    # Earlier tests leave queued content, and erasures that no worker has run.
    connect_to_redis().delete(CONTENT)
    run_due_erasures(now=timezone.now())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Settings) -> Path:
    """Store content in a folder of this test, and return the folder."""
    from caret.settings.service_urls import storage_from

    storage = storage_from("CARET_CONTENT_STORAGE", str(tmp_path / "content"))
    settings.STORAGES = {**settings.STORAGES, "content": storage}
    return tmp_path / "content"


@pytest.fixture
def acme() -> TracedTenant:
    """A tenant with data about its developer, Ada, in many tables and in files."""
    from tests.integration.data_subjects.traces import make_traced_tenant

    return make_traced_tenant("acme")


@pytest.fixture
def globex() -> TracedTenant:
    """Another tenant, with the same data about its own developer."""
    from tests.integration.data_subjects.traces import make_traced_tenant

    return make_traced_tenant("globex")
