"""The language server suggests the next edit.

The gateway is a fake. In the last test, the gateway is real and the engine is a fake.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from caret.contracts.usage import CompletionRecord, OutcomeRecord
from tests.benchmarks.installation import UNSHED, create_home
from tests.fakes.edits import make_answer
from tests.fakes.polling import wait_until
from tests.fakes.scripted_engine import scripted_engine
from tests.functional.editor.developer import make_developer
from tests.functional.gateway.gateway_stack import Site, start_site
from tests.stack.language_server import (
    INVOKED,
    LanguageServer,
    OpenBuffer,
    environment_of,
    language_server,
)
from tests.unit.caret_ls.fake_gateway import Gateway, gateway

_KEY: Final = "cpk_test_" + "0" * 28
_TEXT: Final = "def total(items):\r\n    return sum(items)\r\n\r\n\r\nprint(total([1]), 'ü')\r\n"
_NAME_END: Final = len("def total")
_EDIT: Final = {"start_line": 4, "end_line": 5, "text": "print(total_of([1]), 'ü')\n"}
_TIMEOUT_S: Final = 60.0


@pytest.fixture
async def fake() -> AsyncIterator[Gateway]:
    async with gateway() as fake_gateway:
        fake_gateway.modes = ["inline", "edit"]
        fake_gateway.edit = _EDIT
        yield fake_gateway


@pytest.fixture
async def server(fake: Gateway, tmp_path: Path) -> AsyncIterator[LanguageServer]:
    environment = environment_of(tmp_path, CARET_API_KEY=_KEY, CARET_GATEWAY_URL=fake.url)
    async with language_server(environment, folder=tmp_path) as started_server:
        await started_server.wait_for_status("ready")
        yield started_server


@pytest.fixture
async def buffer(server: LanguageServer, tmp_path: Path) -> OpenBuffer:
    """Open a file, and rename its function."""
    return await _open_renamed(server, tmp_path)


async def _open_renamed(server: LanguageServer, folder: Path) -> OpenBuffer:
    """Open a file, wait until the policy of its repository is known, and rename its function."""
    (folder / ".git").mkdir(parents=True)
    file = folder / "a.py"
    file.write_text(_TEXT)
    buffer = OpenBuffer.opened(server, file, _TEXT)
    async with asyncio.timeout(_TIMEOUT_S):
        while await _suggest_edit(buffer) != {"reason": "nothing_to_suggest"}:
            pass  # edits are off until the policy arrives
    buffer.replace_text(_NAME_END, _NAME_END, "_of")
    return buffer


async def _wait_for_policy(fake: Gateway, buffer: OpenBuffer) -> None:
    """Wait until the language server knows the policy. Until then, next edits are off."""

    def has_requested_policy() -> bool:
        return any(frame["type"] == "policy" for frame in fake.received)

    await wait_until(has_requested_policy, timeout_s=_TIMEOUT_S)
    fake.suggestion = "x"
    # The gateway answers in order, so the policy arrives before this suggestion.
    assert await buffer.request_items(trigger=INVOKED)


async def _suggest_edit(buffer: OpenBuffer, **more: Any) -> Any:
    return await buffer.server.request("$/caret/nextEdit", _params(buffer, **more))


def _params(buffer: OpenBuffer, **more: Any) -> dict[str, Any]:
    return {"uri": buffer.uri, "position": buffer.position(buffer.cursor)} | more


async def test_an_edit_is_returned_for_the_version_of_the_text(
    fake: Gateway, buffer: OpenBuffer
) -> None:
    diagnostics = [{"line": 4, "severity": "error", "message": "not defined"}]
    result = await _suggest_edit(buffer, diagnostics=diagnostics)

    span = {"start": {"line": 4, "character": 0}, "end": {"line": 5, "character": 0}}
    edit = {"range": span, "newText": "print(total_of([1]), 'ü')\r\n"}
    (request,) = fake.requests("edit")
    assert result == {"id": request["id"], "version": buffer.version, "edit": edit}
    assert request["prefix"] + request["suffix"] == buffer.text
    assert request["diagnostics"] == diagnostics
    assert request["recent_edits"] == [
        {
            "path": "a.py",
            "start_line": 0,
            "removed": "def total(items):\r\n",
            "added": "def total_of(items):\r\n",
        }
    ]


async def test_an_accepted_edit_is_counted_and_followed_by_the_next(
    fake: Gateway, server: LanguageServer, buffer: OpenBuffer
) -> None:
    first = await _suggest_edit(buffer)
    server.notify("$/caret/editDisplayed", {"id": first["id"]})
    server.notify("$/caret/editAccepted", {"id": first["id"]})
    start = buffer.text.index("print")  # the line that the edit replaces
    buffer.replace_text(start, len(buffer.text), first["edit"]["newText"])
    fake.edit = {"start_line": 0, "end_line": 0, "text": "# new\n"}
    second = await _suggest_edit(buffer, isFollowUp=True)
    await wait_until(lambda: bool(fake.outcomes("accepted")), timeout_s=_TIMEOUT_S)

    assert second["edit"]["newText"] == "# new\r\n"
    assert len(fake.requests("edit")[1]["recent_edits"]) == 2
    request_id = f"request-{first['id']}"
    for event in ("shown", "accepted"):
        assert [outcome["request_id"] for outcome in fake.outcomes(event)] == [request_id]
    assert fake.outcomes("rejected") == []


async def test_a_keystroke_cancels_the_request_at_the_gateway(
    fake: Gateway, server: LanguageServer, buffer: OpenBuffer
) -> None:
    fake.edit = None  # the gateway does not answer
    _, response = server.begin_request("$/caret/nextEdit", _params(buffer))
    await wait_until(lambda: bool(fake.requests("edit")), timeout_s=_TIMEOUT_S)
    buffer.type_text("x")

    async with asyncio.timeout(_TIMEOUT_S):
        assert await response == {"reason": "newer_keystroke"}
    id = fake.requests("edit")[0]["id"]
    cancel = {"type": "cancel", "id": id}
    await wait_until(lambda: cancel in fake.received, timeout_s=_TIMEOUT_S)


async def test_without_the_mode_edit_nothing_is_requested(
    fake: Gateway, server: LanguageServer, tmp_path: Path
) -> None:
    fake.modes = ["inline"]
    buffer = OpenBuffer.opened(server, tmp_path / "a.py", _TEXT)
    await _wait_for_policy(fake, buffer)
    buffer.replace_text(_NAME_END, _NAME_END, "_of")

    assert await _suggest_edit(buffer) == {"reason": "edit_off"}
    assert fake.requests("edit") == []


async def test_the_setting_turns_edits_off(fake: Gateway, tmp_path: Path) -> None:
    environment = environment_of(tmp_path, CARET_API_KEY=_KEY, CARET_GATEWAY_URL=fake.url)
    options = {"next_edit": False}
    async with language_server(environment, folder=tmp_path, options=options) as server:
        await server.wait_for_status("ready")
        buffer = OpenBuffer.opened(server, tmp_path / "a.py", _TEXT)
        await _wait_for_policy(fake, buffer)
        buffer.replace_text(_NAME_END, _NAME_END, "_of")

        assert await _suggest_edit(buffer) == {"reason": "edit_off"}

    assert fake.requests("edit") == []


@pytest.fixture
def site() -> Iterator[Site]:
    """Run a real gateway with a fake engine that renames the call."""
    with create_home() as home, scripted_engine() as engine:
        engine.text = make_answer(
            "def total_of(items):\n    return sum(items)\n\n\nprint(total_of([1]), 'ü')\n"
        )
        # UNSHED are settings that turn load shedding off.
        unshed = replace(home, environment={**home.environment, **UNSHED})
        with start_site(unshed, engine.url, edit_format="zeta") as running_site:
            yield running_site


async def test_the_models_answer_becomes_an_edit_and_its_outcome_is_recorded(
    site: Site, tmp_path: Path
) -> None:
    ada = make_developer(site, tmp_path)
    async with ada.editor() as server:
        await server.wait_for_status("ready")
        buffer = await _open_renamed(server, ada.home / "shop")
        result = await _suggest_edit(buffer)
        # An accepted edit also counts as shown.
        server.notify("$/caret/editAccepted", {"id": result["id"]})
        (completion,) = await ada.wait_for_records(CompletionRecord, 1)
        outcomes = await ada.wait_for_records(OutcomeRecord, 2)

    span = {"start": {"line": 4, "character": 0}, "end": {"line": 5, "character": 0}}
    assert result["edit"] == {"range": span, "newText": "print(total_of([1]), 'ü')\r\n"}
    assert (completion.mode, completion.tier) == ("edit", "quality")
    assert [outcome.event for outcome in outcomes] == ["shown", "accepted"]
    assert {outcome.request_id for outcome in outcomes} == {completion.request_id}
