"""The modes inline, block, docstring and chat of the language server, with the real engine."""

from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from caret.contracts.policy import Mode
from caret.contracts.usage import CompletionRecord, OutcomeRecord
from tests.functional.editor.developer import Developer, make_developer
from tests.functional.gateway.gateway_stack import Site, wait_until
from tests.stack.language_server import INVOKED, LanguageServer, OpenBuffer, chat_params

pytestmark = pytest.mark.engine

TEXT: Final = (
    "import os\n\n\nclass Reader:\n    def __init__(self, path):\n        self.path = path\n"
)
HEAD: Final = "\n    def read(self):\n        "


@pytest.fixture
def ada(site: Site, tmp_path: Path) -> Developer:
    ada = make_developer(site, tmp_path)
    (ada.home / "shop" / ".git").mkdir(parents=True)
    return ada


def open_text(server: LanguageServer, ada: Developer, path: str, text: str) -> OpenBuffer:
    return OpenBuffer.opened(server, ada.write_file(path, text), text)


async def start_and_cancel_chat(server: LanguageServer, **params: Any) -> None:
    """Start a chat, and cancel its answer, because the small model would write for minutes."""
    params = chat_params("Repeat this file.", **params)
    identifier, answer = server.begin_request("$/caret/chat", params)
    await server.wait_for_chat_text()
    server.notify("$/cancelRequest", {"id": identifier})
    with pytest.raises(RuntimeError, match="canceled"):
        await answer


async def last_record(ada: Developer, mode: str) -> CompletionRecord:
    """Wait until a completion in this mode is recorded, and return the last one."""
    records: list[CompletionRecord] = []

    async def is_there() -> bool:
        records[:] = [record for record in ada.records(CompletionRecord) if record.mode == mode]
        return bool(records)

    assert await wait_until(is_there), f"no completion in mode {mode} was recorded"
    return records[-1]


async def test_an_empty_block_is_completed_on_the_quality_tier(ada: Developer) -> None:
    async with ada.editor() as server:
        await server.wait_for_status("ready")
        buffer = open_text(server, ada, "reader.py", TEXT + HEAD)
        await buffer.request_items()
        record = await last_record(ada, "block")

    assert record.tier == "quality"


async def test_a_key_press_requests_a_docstring_with_its_quotation_marks(ada: Developer) -> None:
    async with ada.editor() as server:
        await server.wait_for_status("ready")
        buffer = open_text(server, ada, "reader.py", TEXT + HEAD)
        command = {"command": "caret.useMode", "arguments": [buffer.uri, "docstring"]}
        await server.request("workspace/executeCommand", command)
        (item,) = await buffer.request_items(trigger=INVOKED)
        record = await last_record(ada, "docstring")

    assert item["insertText"].startswith('"""')
    assert record.tier == "quality"


async def test_a_second_key_press_brings_alternatives(ada: Developer) -> None:
    async with ada.editor(CARET_LS_PREFETCH="no") as server:
        await server.wait_for_status("ready")
        buffer = open_text(server, ada, "reader.py", TEXT + "        self.m")
        first = await buffer.request_items(trigger=INVOKED)
        second = await buffer.request_items(trigger=INVOKED)
        buffer.accept_item(second[-1])
        accepted: list[OutcomeRecord] = []

        async def is_accepted() -> bool:
            outcomes = ada.records(OutcomeRecord)
            accepted[:] = [outcome for outcome in outcomes if outcome.event == "accepted"]
            return bool(accepted)

        assert await wait_until(is_accepted)
        completions = await ada.wait_for_records(CompletionRecord, 3)

    assert len(first) == 1
    assert second[0]["insertText"] == first[0]["insertText"]
    assert len({item["insertText"] for item in second}) == len(second) > 1
    # The first completion is the first suggestion, the others are its alternatives.
    assert accepted[0].request_id in [record.request_id for record in completions[1:]]


async def test_a_docstring_is_written_for_the_function_at_the_cursor(ada: Developer) -> None:
    async with ada.editor() as server:
        await server.wait_for_status("ready")
        buffer = open_text(server, ada, "reader.py", TEXT)
        params = {"uri": buffer.uri, "line": 5}
        result = await server.request("$/caret/writeDocstring", params)
        missing = await server.request("$/caret/writeDocstring", {"uri": buffer.uri, "line": 0})

    assert missing == {"reason": "no_function"}
    assert result["edit"]["range"]["start"] == {"line": 5, "character": 0}
    text = result["edit"]["newText"]
    assert text.startswith('        """')
    assert text.endswith('"""\n')


async def test_a_chat_streams_its_answer_about_the_open_files_until_it_is_cancelled(
    ada: Developer,
) -> None:
    async with ada.editor() as server:
        await server.wait_for_status("ready")
        open_text(server, ada, "lines.py", "LINES = 3\n")
        buffer = open_text(server, ada, "reader.py", TEXT)
        selection = {"start": {"line": 4, "character": 0}, "end": {"line": 6, "character": 0}}
        await start_and_cancel_chat(server, uri=buffer.uri, selection=selection)
        record = await last_record(ada, "chat")

    context, *texts = server.chat_parts
    # The protocol counts lines from 0 and excludes the end. The context counts from 1 and includes
    # the end.
    assert (context["files"], context["selection"]) == (["reader.py", "lines.py"], [5, 6])
    assert all(part["text"] for part in texts)
    assert (record.tier, record.editor, record.protocol) == ("quality", "neovim", "chat")
    assert record.finish_reason == "cancelled"
    assert await ada.site.becomes_idle(), "the engine must stop long before 4,096 tokens"


async def test_excluded_files_are_no_context_and_cannot_be_asked_about(
    site: Site, tmp_path: Path
) -> None:
    ada = make_developer(site, tmp_path, content_exclusion={"*": ("legal/*",)})
    (ada.home / "shop" / ".git").mkdir(parents=True)
    async with ada.editor() as server:
        await server.wait_for_status("ready")
        excluded = open_text(server, ada, "legal/terms.py", "TERMS = 1\n")

        async def is_known_as_excluded() -> bool:
            await excluded.request_items(trigger=INVOKED)
            reason = await server.request("$/caret/explainNoSuggestion", {})
            return bool(reason == {"reason": "excluded"})

        assert await wait_until(is_known_as_excluded)  # the gateway has sent the policy
        buffer = open_text(server, ada, "reader.py", TEXT)
        span = {"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 0}}
        await start_and_cancel_chat(server, uri=buffer.uri)
        result = await server.send_chat("Why?", uri=excluded.uri, selection=span)

    assert [part["files"] for part in server.chat_parts if "files" in part] == [["reader.py"]]
    assert result == {"finishReason": "", "reason": "excluded"}


async def test_a_mode_that_the_key_does_not_allow_gets_the_reason(
    site: Site, tmp_path: Path
) -> None:
    ada = make_developer(site, tmp_path)
    credential = msgspec.structs.replace(
        ada.snapshot.credentials[0], modes=frozenset({Mode.INLINE})
    )
    ada.publish_changes(credentials=(credential,))

    async def is_chat_refused() -> bool:
        body = {"messages": [{"role": "user", "content": "Why?"}], "max_tokens": 1}
        async with (
            site.http(ada.key) as session,
            session.post("/v1/chat/completions", json=body) as response,
        ):
            return response.status == HTTPStatus.FORBIDDEN

    assert await wait_until(is_chat_refused), "the gateway does not know the change"
    async with ada.editor() as server:
        await server.wait_for_status("ready")
        buffer = open_text(server, ada, "reader.py", TEXT)
        chat = await server.send_chat("Why?", uri=buffer.uri)
        docstring = await server.request("$/caret/writeDocstring", {"uri": buffer.uri, "line": 5})

    assert chat == {"finishReason": "", "reason": "chat_off"}
    assert docstring == {"reason": "docstring_off"}


async def test_a_chat_ends_when_its_key_is_revoked(ada: Developer) -> None:
    async with ada.editor() as server:
        await server.wait_for_status("ready")
        buffer = open_text(server, ada, "reader.py", TEXT * 20)
        _, answer = server.begin_request(
            "$/caret/chat", chat_params("Repeat this file.", uri=buffer.uri)
        )
        await server.wait_for_chat_text()
        revoked_credentials = tuple(
            msgspec.structs.replace(credential, revoked_at_ms=1)
            for credential in ada.snapshot.credentials
        )
        ada.publish_changes(credentials=revoked_credentials)
        result = await answer
        second_result = await server.send_chat("Why?", uri=buffer.uri)

    assert result == second_result == {"finishReason": "", "reason": "signed_out"}
    assert server.chat_text
