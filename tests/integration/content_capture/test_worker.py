"""The real worker stores content from gateways by its own schedule: the test calls no task."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tenants.privacy.content_capture import object_store
from tenants.security.encryption.queries import open_sealed
from tests.integration.content_capture.consenting_tenant import (
    ConsentingTenant,
    make_captured_completion,
)
from tests.stack.services import Services
from tests.stack.worker import running_worker


@pytest.fixture
def worker_log(services: Services, folder: Path, tmp_path: Path) -> Iterator[Path]:
    """Run the worker, and return its log."""
    with running_worker(
        services, tmp_path, queue="content", CARET_CONTENT_STORAGE=str(folder)
    ) as log:
        yield log


def test_the_worker_stores_content_by_the_schedule(
    acme: ConsentingTenant, worker_log: Path
) -> None:
    ada = acme.company.developer
    acme.give_consent(ada)

    acme.send_items(make_captured_completion(ada, "planted"))

    assert _is_stored(acme, seconds=300), worker_log.read_text()
    (row,) = acme.objects
    sealed = object_store.read_object(acme.company.tenant_id, row.id)
    content = open_sealed(
        acme.company.tenant_id, context=object_store.build_seal_context(row.id), envelope=sealed
    )
    assert b"planted" in content
    assert "planted" not in worker_log.read_text()


def _is_stored(tenant: ConsentingTenant, *, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if any(row.stored_at is not None for row in tenant.objects):
            return True
        time.sleep(0.2)
    return False
