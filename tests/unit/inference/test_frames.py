"""Frames of the WebSocket protocol: decoding, encoding, and the codes of rejected frames."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.contracts.usage import FinishReason, OutcomeEvent
from inference.completion.edit import DiagnosticSeverity
from inference.gateway.protocol.frames import (
    MAX_FRAME_CHARS,
    MAX_ID_CHARS,
    CancelFrame,
    CompleteFrame,
    CompletionMeta,
    DeltaFrame,
    DiagnosticFrame,
    DoneFrame,
    EditFrame,
    ErrorFrame,
    FileFrame,
    InvalidFrame,
    OutcomeFrame,
    RecentEditFrame,
    decode_frame,
    encode_frame,
)

SECRET = "hunter2"
META = CompletionMeta(
    request_id="r",
    first_token_ms=1.5,
    total_ms=2.0,
    time_to_engine_ms=None,
    assemble_ms=None,
    engine_ms=None,
    prompt_tokens=3,
    cached_tokens=None,
    generated_tokens=4,
    tier="fast",
    pool="demo",
    replica="",
    filter_reason="",
)


def _rejection(frame: Any) -> InvalidFrame:
    """Return the error for a frame: a text as it is, or another value as JSON."""
    text = frame if isinstance(frame, str) else json.dumps(frame)
    with pytest.raises(InvalidFrame) as rejected:
        decode_frame(text)
    return rejected.value


def test_a_complete_frame_needs_only_an_id_and_a_prefix() -> None:
    frame = decode_frame('{"type":"complete","id":"1","prefix":"a"}')

    assert frame == CompleteFrame(id="1", prefix="a")


def test_a_complete_frame_may_have_all_fields() -> None:
    frame = decode_frame(
        json.dumps(
            {
                "type": "complete",
                "id": "1",
                "mode": "block",
                "path": "a.py",
                "language": "python",
                "prefix": "a",
                "suffix": "b",
                "files": [{"path": "b.py", "text": "c", "edited_at": 2}],
                "repository": {"name": "shop", "framework": "django", "imports": ["os"]},
                "max_tokens": 5,
                "recent_edits": [{"path": "a.py", "start_line": 1, "removed": "x", "added": "y"}],
                "diagnostics": [{"line": 2, "severity": "warning", "message": "unused"}],
            }
        )
    )

    assert isinstance(frame, CompleteFrame)
    assert frame.recent_edits == [RecentEditFrame("a.py", 1, "x", "y")]
    assert frame.diagnostics == [DiagnosticFrame(2, DiagnosticSeverity.WARNING, "unused")]
    assert frame.files == [FileFrame("b.py", "c", 2.0)]
    assert (frame.repository.name, frame.max_tokens) == ("shop", 5)


def test_unknown_fields_are_ignored() -> None:
    frame = decode_frame('{"type":"cancel","id":"1","since_version_9":[1,{"a":2}]}')

    assert frame == CancelFrame(id="1")


@pytest.mark.parametrize("event", list(OutcomeEvent))
def test_every_outcome_is_decoded(event: OutcomeEvent) -> None:
    frame = decode_frame(f'{{"type":"outcome","id":"1","event":"{event}","chars":3}}')

    assert frame == OutcomeFrame(id="1", event=event, chars=3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "nonsense",
        '{"type":"cancel","id":"1"} x',
        '{"type":"cancel","id":"\\ud800"}',
        '{"type":"cancel","id":"\ud800"}',
        '{"type":"cancel","id":"1","x":' + "[" * 100_000,
        '{"type":"cancel","id":"1","x":' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
    ids=[
        "empty",
        "unclosed",
        "not JSON",
        "text after the frame",
        "escaped half of a surrogate pair",
        "half of a surrogate pair",
        "deeply nested and unclosed",
        "deeply nested",
    ],
)
def test_malformed_json_is_rejected(text: str) -> None:
    error = _rejection(text)

    assert (error.code, error.message) == ("invalid_json", "The frame is not valid JSON.")


@pytest.mark.parametrize("frame", [[], 3, "text", None, {"type": 3, "id": "1"}])
def test_json_that_is_no_frame_is_rejected(frame: Any) -> None:
    assert _rejection(json.dumps(frame)).code == "invalid_field"


@pytest.mark.parametrize("kind", ["", "hello", "delta", "done", "COMPLETE", SECRET])
def test_an_unknown_type_is_rejected_with_the_id_of_the_frame(kind: str) -> None:
    error = _rejection({"type": kind, "id": "7"})

    assert (error.code, error.id) == ("unknown_type", "7")
    assert SECRET not in error.message


def test_a_frame_without_a_type_has_an_unknown_type() -> None:
    assert _rejection({"id": "7"}).code == "unknown_type"


COMPLETE = {"type": "complete", "id": "7", "prefix": "a"}
EDIT: dict[str, Any] = {"path": "a.py", "start_line": 0, "removed": "", "added": "x"}
DIAGNOSTIC: dict[str, Any] = {"line": 0, "severity": "error", "message": "x"}


@pytest.mark.parametrize(
    ("frame", "field"),
    [
        ({**COMPLETE, "suffix": 3}, "suffix"),
        ({**COMPLETE, "max_tokens": SECRET}, "max_tokens"),
        ({**COMPLETE, "max_tokens": 1.5}, "max_tokens"),
        ({**COMPLETE, "files": SECRET}, "files"),
        ({**COMPLETE, "recent_edits": SECRET}, "recent_edits"),
        ({**COMPLETE, "recent_edits": [{}]}, "recent_edits[0].path"),
        (
            {**COMPLETE, "recent_edits": [EDIT | {"start_line": SECRET}]},
            "recent_edits[0].start_line",
        ),
        ({**COMPLETE, "recent_edits": [EDIT, EDIT | {"added": 1}]}, "recent_edits[1].added"),
        (
            {**COMPLETE, "diagnostics": [DIAGNOSTIC | {"severity": SECRET}]},
            "diagnostics[0].severity",
        ),
        ({**COMPLETE, "diagnostics": [DIAGNOSTIC | {"line": None}]}, "diagnostics[0].line"),
        ({**COMPLETE, "diagnostics": [{"line": 1}]}, "diagnostics[0].severity"),
        ({**COMPLETE, "files": [{"path": "b", "text": 3}]}, "files[0].text"),
        ({**COMPLETE, "repository": {"name": []}}, "repository.name"),
        ({"type": "complete", "id": "7"}, "prefix"),
        ({"type": "outcome", "id": "7", "event": SECRET}, "event"),
        ({"type": "outcome", "id": "7", "event": "shown", "chars": "many"}, "chars"),
    ],
)
def test_an_invalid_field_is_named_without_its_value(frame: dict[str, Any], field: str) -> None:
    error = _rejection(frame)

    assert (error.code, error.id) == ("invalid_field", "7")
    assert error.message == f"{field} is missing or malformed."


@pytest.mark.parametrize("identifier", ["", "x" * (MAX_ID_CHARS + 1)])
def test_an_empty_or_long_id_is_rejected_and_not_repeated(identifier: str) -> None:
    error = _rejection({"type": "cancel", "id": identifier})

    assert (error.code, error.id) == ("invalid_field", "")


# The ID may be empty if the outcome names its completion by the request ID.
@pytest.mark.parametrize(("request_id", "min_chars"), [("r", 0), ("", 1)])
def test_the_error_of_an_outcome_with_a_long_id_names_the_permitted_lengths(
    request_id: str, min_chars: int
) -> None:
    identifier = "x" * (MAX_ID_CHARS + 1)
    error = _rejection(
        {"type": "outcome", "event": "shown", "id": identifier, "request_id": request_id}
    )

    assert error.message == f"id must have {min_chars} to {MAX_ID_CHARS} characters."


def test_the_long_id_of_a_malformed_frame_is_not_repeated() -> None:
    assert _rejection({"type": SECRET, "id": "x" * 1000}).id == ""


def test_a_frame_over_the_limit_is_too_large() -> None:
    assert _rejection(" " * (MAX_FRAME_CHARS + 1)).code == "too_large"


@given(st.text())
def test_arbitrary_text_raises_invalid_frame(text: str) -> None:
    with pytest.raises(InvalidFrame):
        decode_frame(text)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
FIELDS = st.sampled_from(
    ["id", "prefix", "suffix", "files", "repository", "max_tokens", "event", "chars", "mode"]
)


@given(
    st.sampled_from(["complete", "cancel", "outcome", "other"]),
    st.dictionaries(FIELDS, JSON_VALUES, max_size=5),
)
def test_arbitrary_fields_raise_only_invalid_frame(kind: str, fields: dict[str, Any]) -> None:
    text = json.dumps({"type": kind, **fields})

    with suppress(InvalidFrame):
        decode_frame(text)


@given(st.text(alphabet='xyzäß世"\\', min_size=12))
def test_an_error_message_never_quotes_a_value(value: str) -> None:
    error = _rejection({"type": "outcome", "id": "7", "event": value})

    assert value not in error.message


def test_a_delta_is_compact_json() -> None:
    assert encode_frame(DeltaFrame("1", 'a"\n')) == '{"type":"delta","id":"1","text":"a\\"\\n"}'


def test_a_done_frame_contains_all_metadata() -> None:
    frame = json.loads(encode_frame(DoneFrame("1", FinishReason.STOP, META)))

    assert (frame["type"], frame["finish_reason"]) == ("done", "stop")
    assert frame["meta"]["cached_tokens"] is None
    assert set(frame["meta"]) == {
        *(
            "request_id",
            "first_token_ms",
            "total_ms",
            "time_to_engine_ms",
            "assemble_ms",
            "engine_ms",
        ),
        *("prompt_tokens", "cached_tokens", "generated_tokens", "tier", "pool", "replica"),
        "filter_reason",
    }


def test_the_done_frame_of_an_edit_contains_the_edit() -> None:
    edit = EditFrame(start_line=4, end_line=5, text="x\n")

    frame = json.loads(encode_frame(DoneFrame("1", FinishReason.STOP, META, edit)))

    assert frame["edit"] == {"start_line": 4, "end_line": 5, "text": "x\n"}


def test_an_error_has_a_code_and_a_message() -> None:
    frame = json.loads(encode_frame(ErrorFrame("1", "busy", "Too many.")))

    assert frame == {"type": "error", "id": "1", "code": "busy", "message": "Too many."}


def test_an_error_contains_retry_after_if_known() -> None:
    with_wait, without_wait = (
        json.loads(encode_frame(ErrorFrame(id="1", code="c", message="m", retry_after_s=seconds)))
        for seconds in (1.5, None)
    )

    assert with_wait["retry_after_s"] == 1.5
    assert "retry_after_s" not in without_wait
