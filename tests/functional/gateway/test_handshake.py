"""Opening a stream: accepted and rejected handshakes."""

import json
import time
from dataclasses import dataclass

import msgspec
import pytest
from websockets.exceptions import InvalidStatus

from caret.contracts.api_key import KeyKind, generate_key, parse_key
from caret.contracts.snapshot import TenantStatus
from tests.benchmarks.installation import new_credential, new_tenant, publish, root_secret_of
from tests.functional.gateway.gateway_stack import Site, receive, wait_until

pytestmark = pytest.mark.engine


@dataclass(frozen=True, slots=True)
class RefusedKeys:
    """API keys that the gateway knows and refuses."""

    revoked: str
    expired: str
    of_suspended_tenant: str


@pytest.fixture(scope="module")
async def refused_keys(site: Site) -> RefusedKeys:
    root_secret, now_ms = root_secret_of(site.home.paths), time.time_ns() // 1_000_000
    snapshot, key = new_tenant("initech", root_secret=root_secret)
    revoked, revoked_text = new_credential(root_secret)
    expired, expired_text = new_credential(root_secret)
    credentials = (
        *snapshot.credentials,
        msgspec.structs.replace(revoked, revoked_at_ms=now_ms - 1),
        msgspec.structs.replace(expired, expires_at_ms=now_ms - 1),
    )
    publish(site.home.paths, msgspec.structs.replace(snapshot, credentials=credentials))
    suspended, suspended_text = new_tenant("umbrella", root_secret=root_secret)
    publish(site.home.paths, msgspec.structs.replace(suspended, status=TenantStatus.SUSPENDED))

    async def is_known() -> bool:
        return await _refusal(site, suspended_text) == (401, "tenant_suspended")

    assert await wait_until(is_known)
    # The tenant of the revoked and the expired key is active: its other key is accepted.
    async with site.open_websocket(key):
        pass
    return RefusedKeys(revoked_text, expired_text, suspended_text)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("revoked", "revoked_api_key"),
        ("expired", "expired_api_key"),
        ("of_suspended_tenant", "tenant_suspended"),
    ],
)
async def test_a_revoked_expired_or_suspended_key_is_refused_with_the_reason(
    site: Site, refused_keys: RefusedKeys, name: str, code: str
) -> None:
    key = getattr(refused_keys, name)

    assert await _refusal(site, key) == (401, code)
    async with site.http(key) as session, session.post("/v1/completions", json={}) as response:
        assert response.status == 401
        assert (await response.json())["error"]["code"] == code


async def test_a_revocation_is_revealed_only_for_the_complete_key(
    site: Site, refused_keys: RefusedKeys
) -> None:
    revoked_key = parse_key(refused_keys.revoked)
    assert revoked_key is not None
    # A well-formed key with the lookup ID of the revoked key, but with another secret.
    guessed_key = generate_key(KeyKind.DEVELOPER, lookup_id=revoked_key.lookup_id)
    unknown_key = generate_key(KeyKind.DEVELOPER)

    assert await _refusal(site, guessed_key.text) == (401, "invalid_api_key")
    assert await _refusal(site, unknown_key.text) == (401, "invalid_api_key")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "missing_api_key"),
        ({"Authorization": "Bearer "}, "missing_api_key"),
        ({"Authorization": "Basic YWxpY2U6c2VjcmV0"}, "missing_api_key"),
        ({"Authorization": "Bearer nonsense"}, "invalid_api_key"),
        ({"Authorization": "Bearer " + "x" * 5000}, "invalid_api_key"),
    ],
)
async def test_a_connection_without_a_valid_key_is_refused(
    site: Site, headers: dict[str, str], code: str
) -> None:
    with pytest.raises(InvalidStatus) as exc_info:
        async with site.connect_websocket(headers):
            pass

    assert _error_of(exc_info.value) == (401, code)


@pytest.mark.parametrize("name", ["key", "api_key", "token", "access_token", "authorization"])
async def test_a_key_in_the_url_is_ignored(site: Site, name: str) -> None:
    with pytest.raises(InvalidStatus) as exc_info:
        async with site.connect_websocket({}, path=f"/v1/stream?{name}={site.acme_key}"):
            pass

    assert _error_of(exc_info.value) == (401, "missing_api_key")
    path = f"/v1/completions?{name}={site.acme_key}"
    async with site.http("") as session, session.post(path, json={}) as response:
        assert response.status == 401
    assert site.acme_key not in (site.home.paths.logs / "gateway.log").read_text()


@pytest.mark.parametrize("subprotocols", [(), ("caret.v2",), ("chat", "superchat"), ("caret",)])
async def test_a_client_that_does_not_offer_the_protocol_is_refused(
    site: Site, subprotocols: tuple[str, ...]
) -> None:
    with pytest.raises(InvalidStatus) as exc_info:
        async with site.connect_websocket(
            {"Authorization": f"Bearer {site.acme_key}"}, subprotocols
        ):
            pass

    assert _error_of(exc_info.value) == (400, "wrong_subprotocol")


async def test_a_foreign_origin_is_refused(site: Site) -> None:
    headers = {"Authorization": f"Bearer {site.acme_key}", "Origin": "https://evil.example"}

    with pytest.raises(InvalidStatus) as exc_info:
        async with site.connect_websocket(headers):
            pass

    assert _error_of(exc_info.value) == (403, "origin_not_allowed")


async def test_a_key_in_the_subprotocols_is_accepted_and_not_echoed(site: Site) -> None:
    async with site.connect_websocket({}, ("caret.v1", f"caret.key.{site.acme_key}")) as socket:
        await socket.send(json.dumps({"type": "complete", "id": "1", "prefix": "x = "}))
        while (answer := await receive(socket))["type"] == "delta":
            pass

        assert socket.subprotocol == "caret.v1"
        assert answer["type"] == "done"


async def test_a_stream_at_another_path_is_refused(site: Site) -> None:
    with pytest.raises(InvalidStatus) as exc_info:
        async with site.connect_websocket(
            {"Authorization": f"Bearer {site.acme_key}"}, path="/v2/stream"
        ):
            pass

    assert exc_info.value.response.status_code == 403


async def _refusal(site: Site, key: str) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as exc_info:
        async with site.open_websocket(key):
            pass
    return _error_of(exc_info.value)


def _error_of(error: InvalidStatus) -> tuple[int, str]:
    frame = json.loads(bytes(error.response.body or b""))
    assert frame["type"] == "error"
    return error.response.status_code, frame["code"]
