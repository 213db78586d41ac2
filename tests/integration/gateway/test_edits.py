"""Next edits over a WebSocket: a real gateway, and a fake engine with a prepared answer."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

import msgspec
import pytest
import redis
from websockets.exceptions import ConnectionClosed

from caret.client.websocket_client import CompletionStream, GatewayRefused
from caret.contracts.policy import Mode, TenantPolicy
from caret.contracts.snapshot import TenantSnapshot
from caret.contracts.usage import USAGE_STREAM, OutcomeEvent, OutcomeRecord
from inference.gateway.receive import (
    MAX_DIAGNOSTIC_CHARS,
    MAX_DIAGNOSTICS,
    MAX_RECENT_EDITS,
    MAX_RECENT_EDITS_CHARS,
)
from tests.benchmarks.installation import UNSHED, create_home, new_tenant, publish, root_secret_of
from tests.fakes.edits import make_answer
from tests.fakes.gateway import TOKENIZER
from tests.fakes.scripted_engine import ScriptedEngine, scripted_engine
from tests.functional.gateway.gateway_stack import (
    Frame,
    Site,
    receive,
    start_site,
    wait_until,
)

CANARY = "canary_width_of_the_shop"  # customers' text: no file and no record may contain it
PREFIX = f"def area({CANARY}):\n    return "
SUFFIX = "w * 2\n"
ANSWER = make_answer(f"def area({CANARY}):\n    return {CANARY} * 2\n")
CUT_OFF_ANSWER = ANSWER[:60]  # without the marker at the end of the editable region
EDIT = {"start_line": 1, "end_line": 2, "text": f"    return {CANARY} * 2\n"}
# The user's recent edit: in line 0, they renamed the parameter `w`.
RENAMED = {
    "path": "area.py",
    "start_line": 0,
    "removed": "def area(w):\n",
    "added": f"def area({CANARY}):\n",
}
# The diagnostic that the rename causes in line 1.
UNDEFINED = {"line": 1, "severity": "error", "message": 'undefined name "w"'}
# A recent edit of a file that the policy may exclude.
EXCLUDED = {"path": "secrets/keys.py", "start_line": 0, "removed": "", "added": "planted = 1\n"}


@dataclass(frozen=True, slots=True)
class EditSite:
    site: Site
    engine: ScriptedEngine

    def frame(self, **fields: Any) -> Frame:
        """Return the fields of a request for an edit."""
        frame = {"id": self.site.new_id(), "mode": "edit", "path": "area.py", "prefix": PREFIX}
        more = {"suffix": SUFFIX, "recent_edits": [RENAMED], "diagnostics": [UNDEFINED]}
        return {**frame, **more, **fields}

    def prompt_of(self, body: dict[str, Any]) -> str:
        """Return the text of the prompt in a request to the engine."""
        text: str = TOKENIZER._plain.decode(body["prompt"], skip_special_tokens=False)
        return text

    async def publish_tenant(self, **changes: Any) -> tuple[TenantSnapshot, str]:
        """Publish a new tenant with one key, and wait until the gateway knows it."""
        snapshot, key = new_tenant("initech", root_secret=root_secret_of(self.site.home.paths))
        policy: TenantPolicy = msgspec.structs.replace(snapshot.policy, **changes)
        snapshot = msgspec.structs.replace(snapshot, policy=policy)
        publish(self.site.home.paths, snapshot)

        async def is_known() -> bool:
            async with self.site.http(key) as session, session.get("/v1/models") as response:
                return response.status == HTTPStatus.OK

        assert await wait_until(is_known)
        return snapshot, key


@pytest.fixture(scope="module")
def edit_site() -> Iterator[EditSite]:
    with create_home() as home, scripted_engine() as engine:
        home = replace(home, environment={**home.environment, **UNSHED})
        with start_site(home, engine.url, edit_format="zeta") as site:
            yield EditSite(site, engine)


@pytest.fixture(autouse=True)
def _reset_engine(edit_site: EditSite) -> None:
    engine = edit_site.engine
    engine.text, engine.finish_reason, engine.is_held = ANSWER, "stop", False
    engine.requests.clear()


async def _request(stream: CompletionStream, frame: Frame) -> list[Frame]:
    return [answer async for answer in stream.complete(frame)]


async def _modes(stream: CompletionStream) -> list[str]:
    await stream.send({"type": "policy", "repository": ""})
    modes: list[str] = (await stream.receive())["modes"]
    return modes


async def test_the_last_frame_of_a_completion_contains_the_edit(edit_site: EditSite) -> None:
    async with edit_site.site.stream() as stream:
        assert "edit" in await _modes(stream)
        (done,) = await _request(stream, edit_site.frame(include_prompt_segments=True))

    assert (done["finish_reason"], done["edit"]) == ("stop", EDIT)
    assert done["meta"]["filter_reason"] == ""
    kinds = [segment["kind"] for segment in done["meta"]["prompt_segments"]["segments"]]
    assert kinds == ["markers", "edits", "excerpt", "markers"]
    (body,) = edit_site.engine.requests
    prompt = edit_site.prompt_of(body)
    assert 'User edited "area.py"' in prompt
    assert 'undefined name "w"' in prompt


async def test_outcomes_of_an_edit_are_recorded_and_its_text_is_not(edit_site: EditSite) -> None:
    site = edit_site.site
    async with site.stream() as stream:
        frame = edit_site.frame()
        (done,) = await _request(stream, frame)
        # The edit has fewer characters than the last outcome claims: the gateway limits the count.
        for fields in (
            {"event": "shown", "after_ms": 400, "display_ms": 90},
            {"event": "accepted"},
            {"event": "persisted", "after_ms": 15_000, "edited_ratio": 0.1, "chars": 9_999},
        ):
            await stream.send({"type": "outcome", "id": frame["id"], **fields})
        await stream.send({"type": "outcome", "id": frame["id"], "event": "accepted"})
        assert (await stream.receive())["code"] == "duplicate_outcome"
    request_id = done["meta"]["request_id"]

    record = await site.record_of(request_id)

    assert (record.mode, record.tier, record.finish_reason) == ("edit", "quality", "stop")
    num_chars = len(CANARY)  # the edit inserts this word in place of "w"
    assert (record.num_chars, record.num_lines) == (num_chars, 1)
    assert record.first_token_ms is not None
    assert await wait_until(lambda: _has_outcomes(site, request_id, 3))
    outcomes = _outcomes(site, request_id)
    assert [(outcome.event, outcome.chars) for outcome in outcomes] == [
        (OutcomeEvent.SHOWN, num_chars),
        (OutcomeEvent.ACCEPTED, num_chars),
        (OutcomeEvent.PERSISTED, num_chars),
    ]
    with redis.Redis.from_url(site.home.paths.redis_url.read_text().strip()) as connection:
        assert CANARY not in str(connection.xrange(USAGE_STREAM))
    contents = _read_files(site.home.paths.home)
    assert any(request_id.encode() in content for content in contents)  # the journal
    assert not any(CANARY.encode() in content for content in contents)


def _read_files(folder: Path) -> list[bytes]:
    """Return the contents of all files, except those that are deleted meanwhile."""
    contents = []
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            contents += [path.read_bytes()] if path.is_file() else []
    return contents


def _outcomes(site: Site, request_id: str) -> list[OutcomeRecord]:
    records = (record for record in site.records() if isinstance(record, OutcomeRecord))
    return [record for record in records if record.request_id == request_id]


async def _has_outcomes(site: Site, request_id: str, count: int) -> bool:
    return len(_outcomes(site, request_id)) == count


@pytest.mark.parametrize(
    ("text", "engine_reason", "finish_reason", "filter_reason"),
    [
        (make_answer(f"def area({CANARY}):\n    return w * 2\n"), "stop", "stop", "no_change"),
        (CUT_OFF_ANSWER, "length", "length", ""),
        (CUT_OFF_ANSWER, "stop", "filtered", "unfinished"),
        (make_answer("def area(:\n    return\n"), "stop", "filtered", "syntax"),
    ],
    ids=["no change", "too long", "unfinished", "broken"],
)
async def test_unfinished_invalid_or_unchanged_edits_are_not_proposed(
    edit_site: EditSite, text: str, engine_reason: str, finish_reason: str, filter_reason: str
) -> None:
    edit_site.engine.text, edit_site.engine.finish_reason = text, engine_reason
    async with edit_site.site.stream() as stream:
        (done,) = await _request(stream, edit_site.frame())

    assert "edit" not in done
    assert done["finish_reason"] == finish_reason
    assert done["meta"]["filter_reason"] == filter_reason


# One edit with more than MAX_RECENT_EDITS_CHARS, because its path and removed text count, too.
TOO_LONG = RENAMED | {"added": "x" * MAX_RECENT_EDITS_CHARS}


@pytest.mark.parametrize(
    ("fields", "code", "name"),
    [
        ({"recent_edits": [RENAMED] * (MAX_RECENT_EDITS + 1)}, "too_large", "recent_edits"),
        ({"recent_edits": [TOO_LONG]}, "too_large", "recent_edits"),
        ({"recent_edits": [RENAMED | {"start_line": -1}]}, "invalid_field", "start_line"),
        ({"diagnostics": [UNDEFINED] * (MAX_DIAGNOSTICS + 1)}, "too_large", "diagnostics"),
        ({"diagnostics": [UNDEFINED | {"severity": "fatal"}]}, "invalid_field", "severity"),
        (
            {"diagnostics": [UNDEFINED | {"message": "x" * (MAX_DIAGNOSTIC_CHARS + 1)}]},
            "too_large",
            "message",
        ),
        # Only the mode `edit` allows recent edits and diagnostics.
        ({"mode": "inline", "diagnostics": []}, "invalid_field", "recent_edits"),
        ({"mode": "block", "recent_edits": []}, "invalid_field", "diagnostics"),
    ],
)
async def test_an_invalid_field_is_refused_with_its_name(
    edit_site: EditSite, fields: dict[str, Any], code: str, name: str
) -> None:
    async with edit_site.site.stream() as stream:
        with pytest.raises(GatewayRefused) as refused:
            await _request(stream, edit_site.frame(**fields))

        assert refused.value.code == code
        assert name in str(refused.value)
        assert (await _request(stream, edit_site.frame()))[-1]["edit"] == EDIT


async def test_edits_of_two_tenants_share_no_prefix_cache(edit_site: EditSite) -> None:
    for key in (edit_site.site.acme_key, edit_site.site.acme_key, edit_site.site.globex_key):
        async with edit_site.site.stream(key) as stream:
            await _request(stream, edit_site.frame())

    first, repeated, by_globex = edit_site.engine.requests
    assert first["prompt"] == repeated["prompt"] == by_globex["prompt"]
    assert first["cache_salt"] == repeated["cache_salt"]
    assert first["cache_salt"] != by_globex["cache_salt"]


async def test_content_exclusion_applies_to_recent_edits(edit_site: EditSite) -> None:
    _, key = await edit_site.publish_tenant(content_exclusion={"*": ("secrets/**",)})

    async with edit_site.site.stream(key) as stream:
        await _request(stream, edit_site.frame(recent_edits=[EXCLUDED, RENAMED]))

    prompt = edit_site.prompt_of(edit_site.engine.requests[-1])
    assert CANARY in prompt
    assert "planted" not in prompt
    assert "keys.py" not in prompt


async def test_a_policy_without_the_mode_refuses_it(edit_site: EditSite) -> None:
    _, key = await edit_site.publish_tenant(features=frozenset(Mode) - {Mode.EDIT})

    async with edit_site.site.stream(key) as stream:
        modes = await _modes(stream)
        with pytest.raises(GatewayRefused) as refused:
            await _request(stream, edit_site.frame())

    assert "edit" not in modes
    assert refused.value.code == "feature_disabled"
    assert edit_site.engine.requests == []


async def test_a_revoked_key_ends_an_edit_in_flight(edit_site: EditSite) -> None:
    snapshot, key = await edit_site.publish_tenant()
    edit_site.engine.is_held = True  # so only the revocation can end the request
    async with edit_site.site.open_websocket(key) as socket:
        await socket.send(json.dumps({"type": "complete", **edit_site.frame()}))

        async def is_running() -> bool:
            return bool(edit_site.engine.requests)

        assert await wait_until(is_running)
        (credential,) = snapshot.credentials
        revoked = msgspec.structs.replace(credential, revoked_at_ms=1)
        publish(
            edit_site.site.home.paths,
            msgspec.structs.replace(snapshot, version=2, credentials=(revoked,)),
        )

        frame = await receive(socket)
        with pytest.raises(ConnectionClosed) as closed:
            await receive(socket)
    edit_site.engine.is_held = False

    assert (frame["type"], frame["code"]) == ("error", "revoked_api_key")
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401  # the API key is no longer valid


async def test_a_model_without_an_edit_format_offers_no_edits(quick_site: Site) -> None:
    async with quick_site.stream() as stream:
        modes = await _modes(stream)
        with pytest.raises(GatewayRefused) as refused:
            await _request(stream, {"id": quick_site.new_id(), "mode": "edit", "prefix": "a"})

    assert "edit" not in modes
    assert refused.value.code == "mode_unavailable"
