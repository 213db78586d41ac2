"""`typing` frames, with which a client reports characters typed by hand."""

import json
from typing import Any

import pytest

from caret.contracts.usage import TypingRecord
from inference.gateway.protocol.frames import ErrorFrame
from inference.gateway.protocol.typing_reports import MAX_CHARS, MAX_LANGUAGES, MIN_PAUSE_S
from tests.fakes.stream_client import Editor, open_editor
from tests.fakes.tenants import ACME, ADA


async def send_typing_report(editor: Editor, chars: Any) -> list[str]:
    """Send a typing report. Return the codes of all rejections so far."""
    await editor.connection.on_frame(json.dumps({"type": "typing", "chars": chars}))
    return [frame.code for frame in editor.frames if isinstance(frame, ErrorFrame)]


async def test_each_language_is_recorded_for_the_user() -> None:
    async with open_editor() as editor:
        errors = await send_typing_report(editor, {"Python": 120, "": 4, "go": 0})

    records = [record for record in editor.journal.records if isinstance(record, TypingRecord)]
    assert [(record.language, record.chars) for record in records] == [("python", 120), ("", 4)]
    assert {(record.tenant_id, record.user_id) for record in records} == {(ACME, ADA)}
    assert len({record.report_id for record in records}) == 2
    assert errors == []


@pytest.mark.parametrize(
    ("chars", "code"),
    [
        ({"python": -1}, "invalid_field"),
        ({"python": MAX_CHARS + 1}, "invalid_field"),
        ({"python": 1.5}, "invalid_field"),
        ({"python": 10**30}, "invalid_field"),
        ({f"x{number}": 1 for number in range(MAX_LANGUAGES + 1)}, "invalid_field"),
        ({"klingon-secret": 1}, "unknown_language"),
        (7, "invalid_field"),
        (None, "invalid_field"),
    ],
)
async def test_invalid_counts_are_rejected(chars: Any, code: str) -> None:
    async with open_editor() as editor:
        assert await send_typing_report(editor, chars) == [code]

    assert editor.journal.records == []
    # The error message does not repeat the name of an unknown language.
    assert not any("klingon" in str(frame) for frame in editor.frames)


async def test_frequent_reports_are_rejected_with_retry_after() -> None:
    async with open_editor() as editor:
        await send_typing_report(editor, {"python": 1})

        assert await send_typing_report(editor, {"python": 1}) == ["too_many_requests"]

    (error,) = (frame for frame in editor.frames if isinstance(frame, ErrorFrame))
    assert error.retry_after_s == pytest.approx(MIN_PAUSE_S)
    assert len(editor.journal.records) == 1
