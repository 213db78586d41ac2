"""The parts of a completion that may be captured, and those that never leave the gateway."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from caret.contracts.captured_content import (
    MAX_BATCH_CHARS,
    MAX_PREFIX_CHARS,
    MAX_SUFFIX_CHARS,
    MAX_SUGGESTION_EDIT_CHARS,
    CapturedCompletion,
    CapturedSuggestionEdit,
)
from caret.contracts.policy import ContentCapturePolicy, Mode, TenantPolicy
from caret.contracts.usage import FinishReason, OutcomeEvent
from caret.foundation.ids import RequestId
from inference.completion.edit import ProposedEdit
from inference.completion.incoming_request import ChatMessage
from inference.completion.request import Principal
from inference.completion.request_trace import RequestTrace
from inference.completion.suggestion_edit import SuggestionEdit
from inference.content_capture.capture import capture_completion, capture_suggestion_edit
from inference.content_capture.sender import redact_content, split_into_batches
from tests.fakes.clock import FakeClock
from tests.fakes.requests import make_admitted, make_arrival
from tests.fakes.tenants import ADA, make_policy, make_principal

ALLOWING = make_policy(
    content_capture=ContentCapturePolicy(consent_text="tenant-1", retention_days=30)
)
# The text of a suggestion after the user edited it. In contrast, a completion of Mode.EDIT proposes
# an edit (ProposedEdit).
SUGGESTION_EDIT = SuggestionEdit(
    RequestId("r"), OutcomeEvent.PERSISTED, after_ms=30_000, text="edited()"
)


def make_requester(
    *, has_consent: bool = True, policy: TenantPolicy = ALLOWING, **fields: Any
) -> Principal:
    """Return a principal, by default with the consent of the user and of the tenant."""
    base = make_principal(policy=policy, **fields)
    credential = msgspec.structs.replace(base.credential, keeps_content=has_consent)
    return replace(base, credential=credential)


def make_ended_trace(
    requester: Principal,
    *,
    texts: tuple[str, ...] = ("x", "(1)"),
    finish_reason: FinishReason = FinishReason.STOP,
    **request: Any,
) -> RequestTrace:
    """Return the trace of a completion that sent these texts and ended for this reason."""
    trace = RequestTrace(arrival=make_arrival(), clock=FakeClock())
    trace.mark_admitted(make_admitted(principal=requester, **request))
    for text in texts:
        trace.record_sent_text(text, at_s=0.0)
    trace.finish(finish_reason)
    return trace


def test_a_proposed_edit_is_captured_without_the_lines_that_it_replaces() -> None:
    trace = RequestTrace(arrival=make_arrival(), clock=FakeClock())
    trace.mark_admitted(make_admitted(principal=make_requester(), mode=Mode.EDIT))
    edit = ProposedEdit(start_line=0, end_line=1, text="width = 2\n", num_changed_chars=4)
    trace.record_edit(edit)
    trace.finish(FinishReason.STOP)

    captured = capture_completion(trace)

    assert captured is not None
    assert (captured.mode, captured.completion) == (Mode.EDIT, "width = 2\n")


def test_a_completion_is_captured_if_user_and_tenant_consent() -> None:
    trace = make_ended_trace(make_requester(), prefix="a = ", suffix="\nb", path="a.py")

    captured = capture_completion(trace)

    assert captured is not None
    assert (captured.prefix, captured.completion, captured.suffix, captured.path) == (
        "a = ",
        "x(1)",
        "\nb",
        "a.py",
    )
    assert (captured.user_id, captured.request_id) == (ADA, trace.arrival.request_id)


@pytest.mark.parametrize(
    "requester",
    [
        make_requester(has_consent=False),
        make_requester(policy=make_policy()),
        make_requester(has_consent=False, policy=make_policy()),
        make_requester(user_id=None),
    ],
    ids=["no consent of the user", "no consent of the tenant", "neither", "a service key"],
)
def test_nothing_is_captured_without_both_consents(requester: Principal) -> None:
    trace = make_ended_trace(requester)

    assert capture_completion(trace) is None
    assert capture_suggestion_edit(requester, SUGGESTION_EDIT, now_ms=1) is None


@pytest.mark.parametrize(
    "requester", [make_requester(has_consent=False), make_requester(policy=make_policy())]
)
def test_the_request_trace_holds_no_text_without_consent(requester: Principal) -> None:
    assert make_ended_trace(requester).texts is None


@pytest.mark.parametrize(
    "finish_reason",
    sorted(set(FinishReason) - {FinishReason.STOP, FinishReason.LENGTH}),
)
def test_a_completion_that_did_not_end_normally_is_not_captured(
    finish_reason: FinishReason,
) -> None:
    trace = make_ended_trace(make_requester(), finish_reason=finish_reason)

    assert capture_completion(trace) is None


def test_an_empty_completion_is_not_captured() -> None:
    assert capture_completion(make_ended_trace(make_requester(), texts=())) is None


def test_the_text_nearest_to_the_cursor_is_captured_from_a_long_prefix_and_suffix() -> None:
    trace = make_ended_trace(make_requester(), prefix="a" * 20_000 + "b", suffix="c" + "d" * 20_000)

    captured = capture_completion(trace)

    assert captured is not None
    assert (len(captured.prefix), captured.prefix[-1]) == (MAX_PREFIX_CHARS, "b")
    assert (len(captured.suffix), captured.suffix[0]) == (MAX_SUFFIX_CHARS, "c")


def test_only_the_last_messages_of_a_long_chat_are_captured() -> None:
    messages = tuple(ChatMessage("user", letter * 10_000) for letter in "abc")
    trace = make_ended_trace(make_requester(), mode=Mode.CHAT, messages=messages)

    captured = capture_completion(trace)

    assert captured is not None
    # 24,000 characters of a chat are captured. A message is captured completely or not at all.
    assert [turn.text[0] for turn in captured.chat] == ["b", "c"]


def test_an_edited_suggestion_is_captured_unless_it_is_too_long() -> None:
    captured = capture_suggestion_edit(make_requester(), SUGGESTION_EDIT, now_ms=7)

    assert captured is not None
    assert (captured.text, captured.occurred_at_ms, captured.event) == (
        "edited()",
        7,
        OutcomeEvent.PERSISTED,
    )
    too_long = replace(SUGGESTION_EDIT, text="x" * (MAX_SUGGESTION_EDIT_CHARS + 1))
    assert capture_suggestion_edit(make_requester(), too_long, now_ms=7) is None


SECRET = "AKIAIOSFODNN7EXAMPLQ"  # in the format of an AWS access key


def make_captured_completion(**fields: Any) -> CapturedCompletion:
    captured = capture_completion(
        make_ended_trace(make_requester(), prefix="a = ", suffix="\nb", path="a.py")
    )
    assert captured is not None
    return msgspec.structs.replace(captured, **fields)


@pytest.mark.parametrize("field", ["prefix", "suffix"])
async def test_a_secret_in_prefix_or_suffix_is_redacted(field: str) -> None:
    text = f'\naws_key = "{SECRET}"\n'

    captured = await redact_content(make_captured_completion(**{field: text}))

    assert isinstance(captured, CapturedCompletion)
    assert SECRET not in str(captured)
    assert "aws_key" in getattr(captured, field)


@pytest.mark.parametrize(
    "fields",
    [
        {"prefix": f'key = "{SECRET[:9]}', "suffix": f'{SECRET[9:]}"\n', "completion": "x"},
        {"prefix": f'key = "{SECRET[:9]}', "completion": SECRET[9:], "suffix": '"\n'},
        {"completion": f'key = "{SECRET}"\n'},
    ],
    ids=["around the cursor", "completed by the model", "in the completion"],
)
async def test_a_completion_with_a_secret_at_the_cursor_is_discarded(
    fields: dict[str, str],
) -> None:
    assert await redact_content(make_captured_completion(**fields)) is None


PRIVATE_KEY_BODY = "MIIEpAIBAAKCAQEA7bq\nZ2VuZXJhdGVkIGZvciB0ZXN0cw\n"
PRIVATE_KEY_HEADER = "-----BEGIN RSA PRIVATE KEY-----\n"


def test_a_completion_within_a_private_key_is_discarded() -> None:
    trace = make_ended_trace(
        make_requester(), prefix=f"{PRIVATE_KEY_HEADER}{PRIVATE_KEY_BODY}", suffix=PRIVATE_KEY_BODY
    )

    assert capture_completion(trace) is None


def test_a_private_key_whose_header_is_cut_off_is_redacted() -> None:
    key = f"{PRIVATE_KEY_HEADER}{PRIVATE_KEY_BODY}-----END RSA PRIVATE KEY-----\n"
    # So long that only the header of the key exceeds the limit of a captured prefix.
    text_after_key = "x" * (MAX_PREFIX_CHARS - len(key) + len(PRIVATE_KEY_HEADER))
    trace = make_ended_trace(make_requester(), prefix=f"{key}{text_after_key}")

    captured = capture_completion(trace)

    assert captured is not None
    assert not any(line in captured.prefix for line in PRIVATE_KEY_BODY.split())


async def test_a_secret_in_an_edited_suggestion_is_redacted() -> None:
    edit = capture_suggestion_edit(
        make_requester(), replace(SUGGESTION_EDIT, text=f'key = "{SECRET}"'), now_ms=1
    )
    assert edit is not None

    captured = await redact_content(edit)

    assert isinstance(captured, CapturedSuggestionEdit)
    assert SECRET not in captured.text


def test_batches_are_bounded_and_complete() -> None:
    assert MAX_BATCH_CHARS == 200_000  # the lengths below are chosen for this limit
    lengths = (90_000, 90_000, 90_000, 900_000, 1)
    items = [make_captured_completion(prefix="a" * length) for length in lengths]

    content_batches = split_into_batches(list(items))

    assert [item for batch in content_batches for item in batch.items] == items
    # An item over the limit is a batch of its own.
    assert [len(batch.items) for batch in content_batches] == [2, 1, 1, 1]
