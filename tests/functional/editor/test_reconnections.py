"""Outcomes are reported even after the gateway of the suggestion was restarted."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import pytest
import redis

from caret.contracts.api_key import Credential
from caret.contracts.snapshot import TenantSnapshot
from caret.contracts.usage import LateOutcomeRecord, OutcomeRecord
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.models import Outcome, UsageRecord
from tenants.usage.ingestion.operations import ingest_all_entries
from tenants.usage.ingestion.redis_stream import UsageStream
from tests.benchmarks.installation import new_credential, new_tenant, publish, root_secret_of
from tests.fixtures.companies import make_company
from tests.functional.editor.developer import Developer
from tests.functional.editor.typist import open_file, type_until_suggested
from tests.functional.gateway.company import in_thread
from tests.functional.gateway.gateway_stack import Site, receive, wait_until

pytestmark = [pytest.mark.engine, pytest.mark.deep, pytest.mark.usefixtures("database")]

_TIMEOUT_S: Final = 90.0  # the language server checks for persisted text after half a minute


@dataclass(frozen=True, slots=True)
class People:
    """Ada with an editor, a key of a colleague, and a key of another tenant."""

    ada: Developer
    colleagues_key: str
    other_tenants_key: str
    other_tenants_id: TenantId


@pytest.fixture
async def people(site: Site, tmp_path: Path) -> People:
    """Make users of two tenants. The database contains both tenants, so outcomes are ingested."""
    secret = root_secret_of(site.home.paths)
    colleague, colleagues_key = new_credential(secret)
    adas_snapshot, key = await _make_tenant_in_database(secret, colleague)
    other_snapshot, other_tenants_key = await _make_tenant_in_database(secret)
    for snapshot in (adas_snapshot, other_snapshot):
        publish(site.home.paths, snapshot)
    ada = Developer(site, adas_snapshot, key, tmp_path)
    return People(ada, colleagues_key, other_tenants_key, other_snapshot.tenant_id)


async def _make_tenant_in_database(
    secret: bytes, *extra_credentials: Credential
) -> tuple[TenantSnapshot, str]:
    """Make a tenant in the database, and return its snapshot and an API key.

    `make_company` adds a random suffix to the slug, so it can be called for several tenants.
    """
    company = await in_thread(lambda: make_company("initech", {}))
    snapshot, key = new_tenant(company.slug, root_secret=secret)
    changes = {
        "tenant_id": company.tenant_id,
        "credentials": (*snapshot.credentials, *extra_credentials),
    }
    return msgspec.structs.replace(snapshot, **changes), key


async def test_an_outcome_is_reported_to_the_restarted_gateway(
    people: People,
) -> None:
    ada = people.ada
    async with ada.editor(CARET_LS_PREFETCH="no") as server:
        await server.wait_for_status("ready")
        buffer = open_file(server, ada)
        item = await type_until_suggested(buffer, "self.path = path\n        self.m")
        outcome = (await ada.wait_for_records(OutcomeRecord, 1))[-1]
        ada.site.gateway.child.stop()
        try:
            await server.wait_for_status("offline")
            buffer.accept_item(item)
        finally:
            ada.site.launch_gateway()
        await server.wait_for_status("ready")
        # Reports of other users about this request must be ignored.
        for key in (people.other_tenants_key, people.colleagues_key):
            await _report_for_other(ada.site, key, outcome.request_id)

        async def has_persisted() -> bool:
            records = _late_outcomes(ada.site, outcome.request_id)
            return any(record.event == "persisted" for record in records)

        assert await wait_until(has_persisted, timeout_s=_TIMEOUT_S)

    # The language server sends recent outcomes again, because they may have been lost.
    records = _late_outcomes(ada.site, outcome.request_id)
    assert "shown" in {record.event for record in records}, "the outcome was not sent again"
    await in_thread(lambda: _ingest(ada.site))
    rows = await in_thread(lambda: _outcomes(ada.snapshot.tenant_id, outcome.request_id))
    assert [event for event, _, _ in rows] == ["accepted", "persisted", "shown"]
    assert {user for _, user, _ in rows} == {ada.snapshot.credentials[0].user_id}
    accepted_chars = rows[0][2]
    assert accepted_chars == len(item["insertText"])
    assert await in_thread(lambda: _num_rows(people.other_tenants_id)) == 0


async def _report_for_other(site: Site, key: str, request_id: str) -> None:
    """Report an outcome of another user's request.

    An outcome gets no response; the response to the next frame proves that it was processed.
    """
    frame = {"type": "outcome", "request_id": request_id, "event": "rejected", "after_ms": 5}
    async with site.open_websocket(key) as socket:
        await socket.send(json.dumps(frame))
        await socket.send(json.dumps({"type": "policy"}))
        assert (await receive(socket))["type"] == "policy"


def _late_outcomes(site: Site, request_id: str) -> list[LateOutcomeRecord]:
    return [
        record
        for record in site.records()
        if isinstance(record, LateOutcomeRecord) and record.request_id == request_id
    ]


def _ingest(site: Site) -> None:
    with redis.Redis.from_url(site.home.paths.redis_url.read_text().strip()) as connection:
        ingest_all_entries(UsageStream(connection, consumer="test"))


def _outcomes(tenant_id: TenantId, request_id: str) -> list[tuple[str, str, int]]:
    """Return the event, the user and the number of characters of each outcome."""
    with tenant_scope(tenant_id):
        rows = Outcome.objects.filter(request_id=request_id).order_by("event", "span_s")
        return [(row.event, str(row.user_id), row.chars) for row in rows]


def _num_rows(tenant_id: TenantId) -> int:
    with tenant_scope(tenant_id):
        return Outcome.objects.count() + UsageRecord.objects.count()
