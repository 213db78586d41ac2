"""Prompts for edits: their content, their size, and the secrets that they must not contain."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret.contracts.policy import Mode
from caret.contracts.usage import FinishReason
from inference.completion.edit import Diagnostic, DiagnosticSeverity, RecentEdit
from inference.completion.segment import SegmentKind
from inference.context.prompt.prompt import Prompt
from inference.context.prompt.prompt_writer import PromptWriter
from inference.errors import CompletionDropped
from tests.fakes.edits import CURSOR, REGION_END, REGION_START
from tests.fakes.prompts import CODE, assemble_prompt, make_prompt_writer, text_of

WRITER = make_prompt_writer(edit_format="zeta")
GITHUB_TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
PRIVATE_KEY_BODY = "MIIEpAIBAAKCAQEA7bq8Zb5N9xJ0yQ1kX3c2V5n8M4p6R7s9T0u1W2v3"
PRIVATE_KEY = (
    f"-----BEGIN RSA PRIVATE KEY-----\n{PRIVATE_KEY_BODY}\n-----END RSA PRIVATE KEY-----\n"
)
MAX_TOKENS = 512  # of the answer, in the request
MAX_GROWTH_TOKENS = 160  # tokens that an answer may have more than its region


def _assemble(writer: PromptWriter = WRITER, **fields: Any) -> Prompt:
    return assemble_prompt(writer, **{"mode": Mode.EDIT, "max_tokens": MAX_TOKENS, **fields})


def _assemble_text(**fields: Any) -> str:
    return text_of(_assemble(**fields))


def test_the_prompt_has_the_edits_then_the_diagnostics_and_then_the_excerpt() -> None:
    edits = (
        RecentEdit("a.py", start_line=0, removed="def area(w):\n", added="def area(width):\n"),
        RecentEdit("b.py", start_line=7, removed="", added="import area\n"),
    )
    diagnostics = (Diagnostic(1, DiagnosticSeverity.ERROR, "undefined name"),)

    prompt = _assemble(
        prefix="def area(width):\n    return ",
        suffix="w * 2\n",
        recent_edits=edits,
        diagnostics=diagnostics,
    )

    text = text_of(prompt)
    parts = (
        "### Instruction:",
        "-def area(w):\n+def area(width):",
        "+import area",
        "error at `return w * 2`: undefined name",
        f"```a.py\n<|start_of_file|>\n{REGION_START}\ndef area(width):\n",
        f"    return {CURSOR}w * 2\n",
        REGION_END,
        "### Response:\n\n",
    )
    positions = [text.index(part) for part in parts]
    assert positions == sorted(positions)
    assert [segment.kind for segment in prompt.segments] == [
        SegmentKind.MARKERS,
        SegmentKind.EDITS,
        SegmentKind.EXCERPT,
        SegmentKind.MARKERS,
    ]
    assert sum(segment.num_tokens for segment in prompt.segments) == len(prompt.token_ids)


def test_the_region_surrounds_the_cursor_and_has_the_line_numbers_of_the_file() -> None:
    above, below = CODE[:40_000], CODE[40_000:80_000]
    above = above[: above.rfind("\n") + 1]  # whole lines

    prompt = _assemble(prefix=above + "    x", suffix=" = 1\n" + below)

    region = prompt.region
    assert region is not None
    assert region.lines[region.cursor_line] == "    x = 1"
    assert region.start_line + region.cursor_line == above.count("\n")
    assert 0 < region.cursor_line < len(region.lines) - 1
    assert "<|start_of_file|>" not in text_of(prompt)
    num_region_tokens = len(WRITER.tokenizer.encode("\n".join(region.lines)))
    assert prompt.max_tokens == num_region_tokens + MAX_GROWTH_TOKENS


def test_every_kind_of_line_break_gives_the_same_lines() -> None:
    regions = [
        _assemble(prefix=f"a{end}b{end}c", suffix=f"{end}d{end}").region
        for end in ("\n", "\r\n", "\r")
    ]

    lines_of_regions = [region and region.lines for region in regions]
    assert lines_of_regions == [("a", "b", "c", "d", "")] * 3


def test_the_oldest_edits_are_left_out_if_there_is_no_room() -> None:
    edits = tuple(RecentEdit("b.py", n, "", f"value_{n} = {'x' * 300}\n") for n in range(16))

    text = _assemble_text(recent_edits=edits)

    assert "value_15" in text
    assert "value_0 " not in text


def test_diagnostics_of_lines_that_the_model_does_not_see_are_left_out() -> None:
    far = Diagnostic(5_000, DiagnosticSeverity.ERROR, "far away")

    assert "far away" not in _assemble_text(prefix=CODE[:40_000], diagnostics=(far,))


@pytest.mark.parametrize(
    "fields",
    [
        {"prefix": f"a = 1\ntoken = '{GITHUB_TOKEN}'\nb = "},
        {"prefix": f"a = 1\ntoken = '{GITHUB_TOKEN}' + "},
        {"prefix": "a = ", "suffix": f"\ntoken = '{GITHUB_TOKEN}'\n"},
        {"recent_edits": (RecentEdit("a.py", 0, f"t = '{GITHUB_TOKEN}'\n", ""),)},
        {"recent_edits": (RecentEdit("b.py", 0, "", f"t = '{GITHUB_TOKEN}'\n"),)},
        {"diagnostics": (Diagnostic(0, DiagnosticSeverity.HINT, f"unused '{GITHUB_TOKEN}'"),)},
    ],
    ids=["above", "cursor's line", "below", "removed", "added", "diagnostic"],
)
def test_no_secret_is_in_the_prompt(fields: dict[str, Any]) -> None:
    text = _assemble_text(**fields)

    assert GITHUB_TOKEN not in text
    assert "REDACTED" in text


def test_the_cursor_is_at_the_end_of_a_line_whose_secret_was_removed() -> None:
    text = _assemble_text(prefix=f"token = '{GITHUB_TOKEN}'", suffix=" + x\nb = 1\nc = 2\nd = 3\n")

    assert f"token = 'REDACTED' + x{CURSOR}\nb = 1\n" in text


@pytest.mark.parametrize(
    "text", [PRIVATE_KEY, f"{PRIVATE_KEY_BODY}\n"], ids=["key", "a line of a key"]
)
def test_no_private_key_of_a_recent_edit_is_in_the_prompt(text: str) -> None:
    edits = (RecentEdit("id_rsa", 0, text, ""), RecentEdit("id_rsa", 0, "", text))

    assert PRIVATE_KEY_BODY not in _assemble_text(recent_edits=edits)


@pytest.mark.parametrize(
    ("prefix", "suffix"),
    [
        ("a = 1\n", f"\n{PRIVATE_KEY}"),
        (f"{PRIVATE_KEY}a = ", "\n"),
        (f"-----BEGIN RSA PRIVATE KEY-----\n{PRIVATE_KEY_BODY}\n", f"{PRIVATE_KEY_BODY}\n"),
        (f"# {REGION_END}\na = ", "\n"),
        ("x" * 100_000, "\n"),
        ("a = ", "x" * 100_000),
    ],
    ids=["key below", "key above", "in a key", "marker", "long line", "long rest of the line"],
)
def test_no_edit_is_requested_if_the_text_around_the_cursor_cannot_be_sent(
    prefix: str, suffix: str
) -> None:
    with pytest.raises(CompletionDropped) as dropped:
        _assemble(prefix=prefix, suffix=suffix)

    assert dropped.value.finish_reason is FinishReason.FILTERED


@pytest.mark.parametrize("max_context_tokens", [1_024, 1_536, 2_048, 8_192])
def test_the_prompt_and_the_edit_fit_in_the_models_context(max_context_tokens: int) -> None:
    writer = make_prompt_writer(max_context_tokens, edit_format="zeta")
    edits = tuple(RecentEdit("b.py", n, "", CODE[:500]) for n in range(16))

    prompt = _assemble(writer, prefix=CODE[:40_000], suffix=CODE[40_000:], recent_edits=edits)

    # The engine generates at most MAX_TOKENS, or fewer if `prompt.max_tokens` is lower.
    assert len(prompt.token_ids) + MAX_TOKENS <= max_context_tokens


@given(before=st.text(max_size=60), after=st.text(max_size=60))
def test_a_short_file_is_editable_as_a_whole(before: str, after: str) -> None:
    region = _assemble(prefix=before, suffix=after).region

    normalized_before = _normalize_line_breaks(before)
    normalized_after = _normalize_line_breaks(after)
    assert region is not None
    assert "\n".join(region.lines) == normalized_before + normalized_after
    assert len(region.lines) == len(region.shown_lines)
    assert (region.start_line, region.has_last_line) == (0, True)
    assert region.cursor_line == normalized_before.count("\n")


def _normalize_line_breaks(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
