"""The mode of each request: chosen from the text, requested by a shortcut, or not allowed."""

import pytest

from caret_ls.gateway_connection import RequestEnded
from caret_ls.mode_choice import CompletionMode
from caret_ls.skip_rules import SkipReason
from tests.unit.caret_ls.provider_harness import URI, Harness, response_frames

EMPTY_FUNCTION = "def f():\n    |"


def policy_frame(*modes: str) -> dict[str, object]:
    return {"type": "policy", "repository": "", "excluded_globs": [], "modes": list(modes)}


async def request_text(harness: Harness, *, is_invoked: bool = False) -> str | None:
    """Request a suggestion, and return its text; None: there is no suggestion."""
    item = await harness.request_suggestion(is_invoked=is_invoked)
    return None if item is None else item.text


async def test_an_empty_block_is_requested_in_the_mode_block() -> None:
    harness = Harness()
    harness.open(EMPTY_FUNCTION)
    harness.gateway.ready.append(response_frames("return 1"))

    assert await request_text(harness) == "return 1"
    assert [frame["mode"] for frame in harness.gateway.requests] == ["block"]


async def test_an_opened_docstring_is_requested_although_it_is_a_string() -> None:
    harness = Harness()
    harness.open('def f():\n    """|"""')
    harness.gateway.ready.append(response_frames("Add."))

    assert await request_text(harness) == "Add."
    assert [frame["mode"] for frame in harness.gateway.requests] == ["docstring"]


async def test_a_mode_that_is_off_is_replaced_by_inline() -> None:
    harness = Harness()
    harness.policies.update(policy_frame("inline"))
    harness.open(EMPTY_FUNCTION)
    harness.gateway.ready.append(response_frames("return 1"))

    await request_text(harness)

    assert [frame["mode"] for frame in harness.gateway.requests] == ["inline"]


async def test_a_mode_without_a_model_is_replaced_by_inline() -> None:
    harness = Harness()
    harness.open(EMPTY_FUNCTION)
    harness.gateway.ready += [[RequestEnded("no_pool")], response_frames("return 1")]

    first = await request_text(harness)
    reason = harness.completions.last_reason
    second = await request_text(harness)

    assert (first, reason, second) == (None, SkipReason.NO_MODEL, "return 1")
    assert [frame["mode"] for frame in harness.gateway.requests] == ["block", "inline"]


async def test_a_shortcut_requests_its_mode_once() -> None:
    harness = Harness()
    harness.open("x = |")
    harness.gateway.ready += [response_frames("1"), response_frames("2")]
    harness.completions.request_mode(URI, CompletionMode.BLOCK)

    first = await request_text(harness, is_invoked=True)
    harness.type(" ")
    harness.cache.remove(URI)  # so that the second suggestion needs a request
    second = await request_text(harness, is_invoked=True)

    assert (first, second) == ("1", "2")
    assert [frame["mode"] for frame in harness.gateway.requests] == ["block", "inline"]


async def test_a_shortcut_requests_its_mode_although_a_suggestion_is_cached() -> None:
    harness = Harness()
    harness.open("x = |")
    harness.gateway.ready += [response_frames("1"), response_frames("2")]
    await request_text(harness)
    harness.completions.request_mode(URI, CompletionMode.BLOCK)

    assert await request_text(harness, is_invoked=True) == "2"


async def test_a_requested_docstring_begins_with_its_marks() -> None:
    harness = Harness()
    harness.open(EMPTY_FUNCTION)
    harness.gateway.ready.append(response_frames('Add."""'))
    harness.completions.request_mode(URI, CompletionMode.DOCSTRING)

    assert await request_text(harness, is_invoked=True) == '"""Add."""'
    (frame,) = harness.gateway.requests
    assert (frame["mode"], frame["prefix"]) == ("docstring", 'def f():\n    """')


@pytest.mark.parametrize(
    ("mode", "reason"),
    [
        (CompletionMode.BLOCK, SkipReason.BLOCK_OFF),
        (CompletionMode.DOCSTRING, SkipReason.DOCSTRING_OFF),
    ],
)
async def test_the_reason_is_reported_if_a_requested_mode_is_off(
    mode: CompletionMode, reason: SkipReason
) -> None:
    harness = Harness()
    harness.policies.update(policy_frame("inline"))
    harness.open(EMPTY_FUNCTION)
    harness.completions.request_mode(URI, mode)

    assert await request_text(harness, is_invoked=True) is None
    assert harness.completions.last_reason is reason
    assert harness.gateway.requests == []


@pytest.mark.parametrize("code", ["feature_disabled", "insufficient_scope"])
async def test_the_gateways_refusal_names_the_mode(code: str) -> None:
    harness = Harness()
    harness.open(EMPTY_FUNCTION)
    harness.gateway.ready.append([RequestEnded(code)])
    harness.completions.request_mode(URI, CompletionMode.DOCSTRING)

    assert await request_text(harness, is_invoked=True) is None
    assert harness.completions.last_reason is SkipReason.DOCSTRING_OFF
