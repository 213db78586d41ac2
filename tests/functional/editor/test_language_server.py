"""`caret-ls`, driven over stdio by a scripted typist, with the real gateway and the real engine."""

import asyncio
import time
from pathlib import Path

import pytest

from caret.contracts.usage import CompletionRecord, OutcomeRecord
from tests.functional.editor.developer import Developer, make_developer
from tests.functional.editor.typist import LINES, open_file, type_until_suggested
from tests.functional.gateway.gateway_stack import Site
from tests.stack.language_server import INVOKED, OpenBuffer

pytestmark = pytest.mark.engine


@pytest.fixture
def ada(site: Site, tmp_path: Path) -> Developer:
    return make_developer(site, tmp_path)


async def test_an_accepted_suggestion_is_recorded(ada: Developer) -> None:
    async with ada.editor() as server:
        await server.wait_for_status("ready")
        buffer = open_file(server, ada)
        item = await type_until_suggested(buffer, "self.path = path\n        self.m")
        before = buffer.text
        buffer.accept_item(item)
        outcomes = await ada.wait_for_records(OutcomeRecord, 2)

    assert buffer.text == before + item["insertText"]
    shown_outcome, accepted = outcomes[-2:]
    assert [shown_outcome.event, accepted.event] == ["shown", "accepted"]
    assert shown_outcome.request_id == accepted.request_id
    assert accepted.chars == len(item["insertText"])
    completions = await ada.wait_for_records(CompletionRecord, 1)
    accepted_record = next(
        record for record in completions if record.request_id == accepted.request_id
    )
    assert (accepted_record.protocol, accepted_record.editor, accepted_record.language) == (
        "stream",
        "neovim",
        "python",
    )


async def test_typing_along_a_suggestion_sends_no_new_request(ada: Developer) -> None:
    async with ada.editor(CARET_LS_PREFETCH="no") as server:
        await server.wait_for_status("ready")
        buffer = open_file(server, ada)
        remainder = (await type_until_suggested(buffer, "self.path = path\n        self.m"))[
            "insertText"
        ]
        num_requests = await ada.num_records(CompletionRecord)
        for character in remainder[:3]:
            buffer.type_text(character)
            (item,) = await buffer.request_items()
            remainder = remainder[1:]
            assert item["insertText"] == remainder

        assert await ada.num_records(CompletionRecord) == num_requests


async def test_a_newer_key_press_cancels_the_older_request(ada: Developer) -> None:
    # With the default debounce_ms, the first requests are sent at once, and may be answered. A long
    # one, so that a busy machine does not delay a key for longer.
    async with ada.editor(CARET_LS_DEBOUNCE_MS="1000") as server:
        await server.wait_for_status("ready")
        buffer = open_file(server, ada)
        pending = []
        for character in "self.number_of_lines":
            buffer.type_text(character)
            _, answer = server.begin_request(
                "textDocument/inlineCompletion", buffer.completion_params()
            )
            pending.append(answer)  # without pauses, which may take long on a busy machine
        answers = await asyncio.gather(*pending)

    assert [answer["items"] for answer in answers[:-1]] == [[]] * (len(answers) - 1)
    # The last request is sent. On a busy machine, an earlier one may be sent, too.
    assert 1 <= await ada.num_records(CompletionRecord) <= 2


async def test_a_cancelled_editor_request_gets_a_response(ada: Developer) -> None:
    async with ada.editor() as server:
        await server.wait_for_status("ready")
        buffer = open_file(server, ada)
        identifier, answer = server.begin_request(
            "textDocument/inlineCompletion", buffer.completion_params()
        )
        server.notify("$/cancelRequest", {"id": identifier})
        with pytest.raises(RuntimeError, match="canceled"):
            await answer

        assert isinstance(await buffer.request_items(), list)


async def test_excluded_files_are_not_sent(site: Site, tmp_path: Path) -> None:
    ada = make_developer(site, tmp_path, content_exclusion={"*": ("**/legal/*",)})
    (ada.home / "shop" / ".git").mkdir(parents=True)
    async with ada.editor() as server:
        await server.wait_for_status("ready")
        buffer = open_file(server, ada, "legal/reader.py")
        for trigger in (INVOKED, INVOKED, INVOKED):
            buffer.type_text("a")
            assert await buffer.request_items(trigger=trigger) == []
        reason = await server.request("$/caret/explainNoSuggestion", {})

    assert reason == {"reason": "excluded"}
    num_requests = await ada.num_records(CompletionRecord)
    assert num_requests <= 1, "only the first request may be sent before the policy arrives"


async def test_a_gateway_restart_causes_no_error(ada: Developer) -> None:
    async with ada.editor() as server:
        await server.wait_for_status("ready")
        buffer = open_file(server, ada)
        ada.site.gateway.child.stop()
        try:
            await server.wait_for_status("offline")
            buffer.type_text("s")
            items_offline = await buffer.request_items()
            reason = await server.request("$/caret/explainNoSuggestion", {})
        finally:
            ada.site.launch_gateway()
        await server.wait_for_status("ready")
        # The "s" was typed while the gateway was down.
        item = await type_until_suggested(buffer, "elf.path = path\n        self.m")

    assert (items_offline, reason) == ([], {"reason": "offline"})
    assert item["insertText"]


async def test_a_refused_key_is_shown_as_a_status(ada: Developer) -> None:
    async with ada.editor(CARET_API_KEY="cpk_live_nobodys") as server:
        await server.wait_for_status("signed_out")
        buffer = open_file(server, ada)
        buffer.type_text("s")
        items = await buffer.request_items()
        server.notify("$/caret/signIn", {"key": ada.key})
        await server.wait_for_status("ready")

    assert items == []


async def test_the_log_contains_neither_code_nor_key(ada: Developer) -> None:
    async with ada.editor() as server:
        await server.wait_for_status("ready")
        buffer = open_file(server, ada)
        await type_until_suggested(buffer, "self.path = path\n        self.m")
        # Invalid requests: the server logs their errors.
        for method in ("textDocument/didChange", "textDocument/inlineCompletion"):
            server.begin_request(method, {"textDocument": {"nonsense": LINES}})
        await server.request("$/caret/explainNoSuggestion", {})

    assert "link.connected" in ada.log
    assert "server.failed" in ada.log
    assert "class Reader" not in ada.log
    assert ada.key not in ada.log


async def test_huge_and_unusual_files_are_handled(ada: Developer) -> None:
    # Characters beyond ASCII, a lone surrogate, and all three kinds of line breaks.
    mixed_text = 'x = "😀中"\r\ny = "\ud800"\rz = 1\n' + LINES
    async with ada.editor() as server:
        await server.wait_for_status("ready")
        huge = OpenBuffer.opened(server, ada.home / "huge.py", "value = 1\n" * 500_000)
        mixed = OpenBuffer.opened(server, ada.home / "mixed.py", mixed_text)
        began_s = time.monotonic()
        for buffer in (huge, mixed):
            buffer.type_text("\nself")
            await buffer.request_items(trigger=INVOKED)
        took_s = time.monotonic() - began_s
        # Close the file while a request for it is in progress.
        mixed.server.begin_request(
            "textDocument/inlineCompletion", mixed.completion_params(trigger=INVOKED)
        )
        mixed.close()
        items_after_close = await mixed.request_items()

    assert items_after_close == []
    assert took_s < 100  # a quadratic search would take minutes
    assert server.statuses[-1] in ("ready", "working")
