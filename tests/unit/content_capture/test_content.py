"""The parts of a completion that may be captured, and those that never leave the gateway."""

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from caret.contracts.captured_content import (
    MAX_BATCH_CHARS,
    MAX_EDIT_CHARS,
    MAX_PREFIX_CHARS,
    MAX_SUFFIX_CHARS,
    CapturedCompletion,
    CapturedEdit,
)
from caret.contracts.policy import ContentCapturePolicy, Mode, TenantPolicy
from caret.contracts.usage import FinishReason, OutcomeEvent
from caret.foundation.ids import RequestId
from inference.completion.incoming_request import ChatMessage
from inference.completion.request import Principal
from inference.completion.request_trace import RequestTrace
from inference.completion.suggestion_edit import SuggestionEdit
from inference.content_capture.capture import capture_completion, capture_edit
from inference.content_capture.sender import batches, redact_content
from tests.fakes.clock import FakeClock
from tests.fakes.requests import make_admitted, make_arrival
from tests.fakes.tenants import ADA, make_policy, make_principal

ALLOWING = make_policy(telemetry=ContentCapturePolicy(wording="tenant-1", retention_days=30))
EDIT = SuggestionEdit(RequestId("r"), OutcomeEvent.PERSISTED, after_ms=30_000, text="edited()")


def principal(*, agrees: bool = True, policy: TenantPolicy = ALLOWING, **more: Any) -> Principal:
    made = make_principal(policy=policy, **more)
    credential = msgspec.structs.replace(made.credential, keeps_content=agrees)
    return replace(made, credential=credential)


def ended(
    by: Principal,
    *,
    texts: tuple[str, ...] = ("x", "(1)"),
    finish: FinishReason = FinishReason.STOP,
    **request: Any,
) -> RequestTrace:
    account = RequestTrace(arrival=make_arrival(), clock=FakeClock())
    account.mark_admitted(make_admitted(principal=by, **request))
    for text in texts:
        account.record_sent_text(text, at_s=0.0)
    account.finish(finish)
    return account


def test_with_both_keys_turned_a_completion_may_be_kept() -> None:
    account = ended(principal(), prefix="a = ", suffix="\nb", path="a.py")

    kept = capture_completion(account)

    assert kept is not None
    assert (kept.prefix, kept.completion, kept.suffix, kept.path) == ("a = ", "x(1)", "\nb", "a.py")
    assert (kept.user_id, kept.request_id) == (ADA, account.arrival.request_id)


@pytest.mark.parametrize(
    "by",
    [
        principal(agrees=False),
        principal(policy=make_policy()),
        principal(agrees=False, policy=make_policy()),
        principal(user_id=None),
    ],
    ids=["the user does not agree", "the tenant does not allow", "neither", "a service key"],
)
def test_with_less_nothing_is_held_and_nothing_kept(by: Principal) -> None:
    account = ended(by)

    assert capture_completion(account) is None
    assert capture_edit(by, EDIT, now_ms=1) is None


@pytest.mark.parametrize("by", [principal(agrees=False), principal(policy=make_policy())])
def test_without_consent_not_even_the_account_holds_the_text(by: Principal) -> None:
    assert ended(by).texts is None


@pytest.mark.parametrize(
    "finish",
    sorted(set(FinishReason) - {FinishReason.STOP, FinishReason.LENGTH}),
)
def test_what_was_not_shown_to_its_end_is_not_kept(finish: FinishReason) -> None:
    assert capture_completion(ended(principal(), finish=finish)) is None


def test_an_empty_completion_is_not_kept() -> None:
    assert capture_completion(ended(principal(), texts=())) is None


def test_texts_are_cut_to_what_is_nearest_to_the_cursor() -> None:
    kept = capture_completion(
        ended(principal(), prefix="a" * 20_000 + "b", suffix="c" + "d" * 20_000)
    )

    assert kept is not None
    assert (len(kept.prefix), kept.prefix[-1]) == (MAX_PREFIX_CHARS, "b")
    assert (len(kept.suffix), kept.suffix[0]) == (MAX_SUFFIX_CHARS, "c")


def test_of_a_chat_the_last_turns_are_kept_whole() -> None:
    messages = tuple(ChatMessage("user", letter * 10_000) for letter in "abc")

    kept = capture_completion(ended(principal(), mode=Mode.CHAT, messages=messages))

    assert kept is not None
    assert [turn.text[0] for turn in kept.chat] == ["b", "c"]


def test_an_edit_may_be_kept_but_none_that_is_too_long() -> None:
    kept = capture_edit(principal(), EDIT, now_ms=7)

    assert kept is not None
    assert (kept.text, kept.occurred_at_ms, kept.event) == ("edited()", 7, OutcomeEvent.PERSISTED)
    assert (
        capture_edit(principal(), replace(EDIT, text="x" * (MAX_EDIT_CHARS + 1)), now_ms=7) is None
    )


SECRET = "AKIAIOSFODNN7EXAMPLQ"


def completion(**fields: Any) -> CapturedCompletion:
    kept = capture_completion(ended(principal(), prefix="a = ", suffix="\nb", path="a.py"))
    assert kept is not None
    return msgspec.structs.replace(kept, **fields)


@pytest.mark.parametrize("field", ["prefix", "suffix"])
async def test_a_secret_is_cut_out(field: str) -> None:
    text = f'\naws_key = "{SECRET}"\n'

    kept = await redact_content(completion(**{field: text}))

    assert isinstance(kept, CapturedCompletion)
    assert SECRET not in str(kept)
    assert "aws_key" in getattr(kept, field)


@pytest.mark.parametrize(
    "fields",
    [
        {"prefix": f'key = "{SECRET[:9]}', "suffix": f'{SECRET[9:]}"\n', "completion": "x"},
        {"prefix": f'key = "{SECRET[:9]}', "completion": SECRET[9:], "suffix": '"\n'},
        {"completion": f'key = "{SECRET}"\n'},
    ],
    ids=["around the cursor", "completed", "suggested"],
)
async def test_a_secret_at_the_cursor_keeps_all_of_it_away(fields: dict[str, str]) -> None:
    assert await redact_content(completion(**fields)) is None


async def test_a_secret_in_a_chat_or_an_edit_is_cut_out() -> None:
    edit = capture_edit(principal(), replace(EDIT, text=f'key = "{SECRET}"'), now_ms=1)
    assert edit is not None

    kept = await redact_content(edit)

    assert isinstance(kept, CapturedEdit)
    assert SECRET not in kept.text


def test_batches_are_bounded_and_lose_nothing() -> None:
    items = [completion(prefix="a" * length) for length in (90_000, 90_000, 90_000, 900_000, 1)]

    made = batches(list(items))

    assert [item for batch in made for item in batch.items] == items
    assert [len(batch.items) for batch in made] == [2, 1, 1, 1]
    assert MAX_BATCH_CHARS == 200_000
