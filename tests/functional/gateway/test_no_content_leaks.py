"""No log, record or file of any server contains an API key, or customer code without consent.

With consent to content capture, customer code is stored only encrypted ("sealed").

All of Caret runs: gateway, engine, worker, console, Postgres, Valkey. The tests plant canary
strings (random and unique) in every field that a client can send, in valid and in invalid requests.
Then they search every file in the installation's folder, including the files of Postgres and
Valkey, and every value in Redis.
"""

import json
from collections.abc import Iterator
from typing import cast

import aiohttp
import pytest
from django.utils import timezone
from websockets.exceptions import ConnectionClosed, InvalidStatus

from caret.client.websocket_client import CompletionStream, GatewayRefused, open_stream
from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.permissions import Role
from tenants.identity.api_keys.operations import CreatedKey
from tenants.models import ContentObject, UsageRecord
from tenants.policy.document import DEFAULT_POLICY, serialize_policy
from tenants.policy.operations import set_policy
from tenants.privacy.consent.consent import UserConsent
from tenants.privacy.consent.consent_texts import TENANT_CONSENT_VERSION, USER_CONSENT_VERSIONS
from tenants.privacy.consent_lifecycle import ConsentChoice, set_consent
from tenants.privacy.content_capture import object_store
from tenants.security.encryption.queries import open_sealed
from tests.fixtures.companies import Company, make_company, make_key
from tests.functional.gateway.canary_strings import PlantedStrings, StoredData
from tests.functional.gateway.company import in_thread
from tests.functional.gateway.gateway_stack import Frame, connect_websocket, wait_until
from tests.stack.running import Stack
from tests.stack.services import Services

pytestmark = pytest.mark.engine
# The valid requests cause 13 usage records: 2 over WebSocket, 4 in OpenAI's protocol, 7 in other
# protocols. Warm-ups cause none.
_NUM_RECORDS = 13


@pytest.mark.usefixtures("database")
async def test_neither_customer_code_nor_keys_are_stored(stack: Stack, services: Services) -> None:
    company, key = await in_thread(_new_customer)
    planted = PlantedStrings()
    planted.places[key.text] = "key"
    assert await wait_until(lambda: _is_known(stack, key.text)), "the gateway does not know the key"
    await _send_valid_requests(stack, key.text, planted)
    await _send_invalid_requests(stack, key.text, planted)

    async def is_ingested() -> bool:
        return await in_thread(lambda: _num_rows(company.tenant_id)) >= _NUM_RECORDS

    assert await wait_until(is_ingested, timeout_s=180.0), "the usage was not ingested"

    # The lookup ID may be stored. The search finds it, so it would find the other strings, too.
    stored_data = StoredData(services)
    assert stored_data.find_holders(key.key.lookup_id) >= {"postgres", "valkey", "Redis"}
    holders_by_place = {
        place: stored_data.find_holders(text) for text, place in planted.places.items()
    }
    assert {place: holders for place, holders in holders_by_place.items() if holders} == {}


@pytest.mark.usefixtures("database")
async def test_captured_content_is_stored_only_sealed(stack: Stack, services: Services) -> None:
    company, key = await in_thread(_new_consenting_customer)
    planted = PlantedStrings()
    assert await wait_until(lambda: _is_known(stack, key.text)), "the gateway does not know the key"

    async def is_stored() -> bool:
        stored_content = await in_thread(lambda: _read_stored_content(company.tenant_id))
        return all(kind in stored_content for kind in (b'"type":"completion"', b'"type":"edit"'))

    # The filter withholds some of the model's text, and withheld text is not captured.
    for number in range(10):
        await _request_and_edit(stack, key.text, planted, kind=f" {number}")
        if await wait_until(is_stored, timeout_s=20.0):
            break

    stored_content = await in_thread(lambda: _read_stored_content(company.tenant_id))
    found_places = {
        place for text, place in planted.places.items() if text.encode() in stored_content
    }
    # The name of a place is the field's name and the number of the request.
    fields = {place.rpartition(" ")[0] for place in found_places}
    assert fields == {"path", "prefix", "suffix", "repository", "edited suggestion"}
    stored_data = StoredData(services)
    # The names of the files contain the tenant's ID, so the search covers the stored content.
    assert "content" in stored_data.find_holders(company.tenant_id)
    holders_by_place = {
        place: stored_data.find_holders(text) for text, place in planted.places.items()
    }
    assert {place: holders for place, holders in holders_by_place.items() if holders} == {}


async def _request_and_edit(stack: Stack, key: str, planted: PlantedStrings, *, kind: str) -> None:
    """Request a completion and report that the user accepted and edited it."""
    async with open_stream(stack.gateway_url, key) as stream:
        await stream.send(planted.frame("1", kind))
        await _wait_for_end(stream)
        outcome = {"type": "outcome", "id": "1", "event": "accepted", "chars": 3}
        await stream.send({**outcome, "text": f"{planted.plant(f'edited suggestion{kind}')} = 1"})


async def _is_known(stack: Stack, key: str) -> bool:
    try:
        async with open_stream(stack.gateway_url, key):
            return True
    except GatewayRefused:
        return False


async def _send_valid_requests(stack: Stack, key: str, planted: PlantedStrings) -> None:
    async with open_stream(stack.gateway_url, key) as stream:
        await stream.send(planted.file_opened_frame())
        await stream.send(planted.frame("whole"))
        await _wait_for_end(stream)
        outcome = {"type": "outcome", "id": "whole", "event": "accepted", "chars": 3}
        await stream.send({**outcome, "text": planted.plant("edited suggestion")})
        await stream.send(planted.frame("cancelled", " of a cancelled request"))
        await stream.send({"type": "cancel", "id": "cancelled"})
        await _wait_for_end(stream)
    headers = {"Authorization": f"Bearer {key}"}
    async with aiohttp.ClientSession(stack.gateway_url, headers=headers) as session:
        for body in (
            planted.body(" of a raw request"),
            planted.body(" of a streamed request", stream=True),
            planted.body(" beside a suffix", suffix=f"\n{planted.plant('suffix of HTTP')}\n"),
            planted.body(" beside four stops", stop=[planted.plant("stops")] * 4),
        ):
            async with session.post("/v1/completions", json=body) as response:
                assert response.status == 200
                await response.read()
        for path, body in planted.other_protocols():
            planted_headers = {
                "X-Caret-Path": f"{planted.plant(f'path header of {path}')}.py",
                "X-Caret-Repository": planted.plant(f"repository header of {path}"),
                "traceparent": f"00-{planted.plant(f'traceparent of {path}')}",
                "User-Agent": planted.plant(f"user agent of {path}"),
            }
            async with session.post(path, json=body, headers=planted_headers) as response:
                assert response.status == 200, (path, await response.text())
                await response.read()


async def _send_invalid_requests(stack: Stack, key: str, planted: PlantedStrings) -> None:
    async with open_stream(stack.gateway_url, key) as stream:
        broken = planted.plant("broken frame")
        for frame in (
            {**planted.frame("1", " of a bad mode"), "mode": planted.plant("mode")},
            {**planted.frame("2", " of a bad language"), "language": planted.plant("language")},
            {**planted.frame("3", " of bad tokens"), "max_tokens": planted.plant("max_tokens")},
            {**planted.frame("4", " of a bad type"), "type": planted.plant("type")},
            {**planted.frame("5", " of a long path"), "path": planted.plant("long path") * 60},
            planted.edit_frame("6"),  # valid, but no model here proposes edits
            {"type": "cancel", "id": planted.plant("id of a cancel") * 3},
            [broken],  # a list instead of an object
        ):
            await stream.send(cast(Frame, frame))
            assert (await stream.receive())["type"] == "error"
    await _open_invalid_streams(stack, key, planted)
    async with aiohttp.ClientSession(stack.gateway_url) as session:
        valid_headers = {"Authorization": f"Bearer {key}"}
        query = f"?{planted.plant('query')}={planted.plant('query value')}"
        for path, headers, data in (
            ("/v1/completions", valid_headers, f'{{"prompt": "{planted.plant("half a body")}'),
            (
                "/v1/completions",
                valid_headers,
                json.dumps({"prompt": 1, "x": planted.plant("bad body")}),
            ),
            (f"/v1/completions{query}", valid_headers, planted.plant("no JSON")),
            (f"/{planted.plant('address')}", valid_headers, planted.plant("body at no address")),
            (f"/v1/completions?key={key}", {}, planted.plant("body without a key")),
            ("/v1/completions", {"Authorization": f"Bearer {planted.plant('bad key')}"}, ""),
            ("/v1/completions", {"Authorization": planted.plant("bad authorization")}, ""),
            *_invalid_other_protocols(valid_headers, planted),
        ):
            async with session.post(path, headers=headers, data=data) as response:
                assert response.status in (400, 401, 404, 413)


def _invalid_other_protocols(
    valid_headers: dict[str, str], planted: PlantedStrings
) -> Iterator[tuple[str, dict[str, str], str]]:
    """Yield the path, headers and body of requests that the gateway must refuse.

    Each valid body of the other protocols is sent with a field of the wrong type, as invalid JSON,
    and without an API key. Invalid bodies for two further paths follow.
    """
    for path, body in planted.other_protocols():
        wrong_body = {
            **body,
            next(iter(body)): {"wrong": [planted.plant(f"wrong field of {path}")]},
        }
        yield path, valid_headers, json.dumps(wrong_body)
        yield path, valid_headers, json.dumps(body)[:-1]
        yield path, {}, json.dumps(body)
    event = {
        "type": planted.plant("event's type"),
        "completion_id": planted.plant("event's completion"),
    }
    yield (
        "/v1/events",
        valid_headers,
        json.dumps({**event, "elapsed": planted.plant("event's elapsed")}),
    )
    yield "/api/show", valid_headers, json.dumps({"model": [planted.plant("model to show")]})


async def _open_invalid_streams(stack: Stack, key: str, planted: PlantedStrings) -> None:
    path = f"/v1/stream?key={key}&{planted.plant('query of a stream')}=1"
    with pytest.raises(InvalidStatus):
        async with connect_websocket(stack.gateway_url, {}, path=path):
            pass
    headers = {"Authorization": f"Bearer {key}", "Origin": f"https://{planted.plant('origin')}"}
    with pytest.raises(InvalidStatus):
        async with connect_websocket(stack.gateway_url, headers):
            pass
    text = planted.plant("text that is not UTF-8").encode() + b"\xff"
    async with connect_websocket(stack.gateway_url, {"Authorization": f"Bearer {key}"}) as socket:
        await socket.send(text, text=True)
        with pytest.raises(ConnectionClosed):
            await socket.recv()


async def _wait_for_end(stream: CompletionStream) -> None:
    while (answer := await stream.receive())["type"] == "delta":
        pass
    assert answer["type"] == "done"


def _new_customer() -> tuple[Company, CreatedKey]:
    company = make_company("initech", {Role.DEVELOPER: "peter"})
    return company, make_key(company, company.developer)


def _num_rows(tenant_id: TenantId) -> int:
    with tenant_scope(tenant_id):
        return UsageRecord.objects.filter(tenant_id=tenant_id).count()


def _new_consenting_customer() -> tuple[Company, CreatedKey]:
    company = make_company("initech", {Role.ADMINISTRATOR: "bill", Role.DEVELOPER: "peter"})
    content_capture = {"consent_text": TENANT_CONSENT_VERSION, "retention_days": 30}
    set_policy(
        actor=company.administrator.actor,
        document=serialize_policy(DEFAULT_POLICY) | {"content_capture": content_capture},
        reason="a test",
        now=timezone.now(),
    )
    choice = ConsentChoice(
        UserConsent(content_capture=True, training=False), frozenset(USER_CONSENT_VERSIONS.values())
    )
    set_consent(actor=company.developer.actor, choice=choice, now=timezone.now())
    return company, make_key(company, company.developer)


def _read_stored_content(tenant_id: TenantId) -> bytes:
    """Return the decrypted content of all stored objects."""
    with tenant_scope(tenant_id):
        rows = ContentObject.objects.filter(tenant_id=tenant_id, stored_at__isnull=False)
        ids = list(rows.values_list("id", flat=True))
    return b"".join(
        open_sealed(
            tenant_id,
            context=object_store.build_seal_context(id_),
            envelope=object_store.read_object(tenant_id, id_),
        )
        for id_ in ids
    )
