"""The reasons why no suggestion is requested."""

from dataclasses import replace
from typing import Any

import pytest

from caret_ls.file_kind import FileKind
from caret_ls.skip_rules import SkipReason, SkipRules, find_skip_reason
from tests.unit.caret_ls.contexts import context_at

RULES = SkipRules()


def skip_reason(text: str, rules: SkipRules = RULES, **fields: Any) -> SkipReason | None:
    """Return the skip reason for a normal file in which nothing is selected."""
    return find_skip_reason(
        context_at(text, **fields), rules, kind=FileKind.NORMAL, has_selection=False
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = |", None),
        ("a = f(|)", None),
        ("a = f(|);", None),
        ("a = 1;|", SkipReason.STATEMENT_ENDED),
        ("}  |\nb", SkipReason.STATEMENT_ENDED),
        ("for (;|)", None),
        ("a = | + b", SkipReason.MID_LINE),
        ("# why |", SkipReason.IN_COMMENT),
        ("a = 'it|'", SkipReason.IN_STRING),
        (" \n|\n", SkipReason.BLANK_FILE),
        ("|\nb = 1", None),
    ],
)
def test_unsuitable_contexts_are_skipped(text: str, expected: SkipReason | None) -> None:
    assert skip_reason(text) is expected


def test_suggestions_in_comments_and_strings_can_be_enabled() -> None:
    assert skip_reason("# why |", SkipRules(complete_in_comments=True)) is None
    assert skip_reason("a = 'it|'", SkipRules(complete_in_strings=True)) is None


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (SkipRules(is_paused=True), SkipReason.PAUSED),
        (SkipRules(disabled_languages=frozenset({"python"})), SkipReason.LANGUAGE_OFF),
    ],
)
def test_pause_and_disabled_languages_apply_only_to_automatic_requests(
    rules: SkipRules, expected: SkipReason
) -> None:
    assert skip_reason("a = |", rules) is expected
    assert skip_reason("a = |", rules, is_invoked=True) is None


@pytest.mark.parametrize(
    ("rules", "kind", "expected"),
    [
        (SkipRules(excluded=("a.*",)), FileKind.NORMAL, SkipReason.EXCLUDED),
        (SkipRules(modes=frozenset()), FileKind.NORMAL, SkipReason.MODE_OFF),
        (RULES, FileKind.SECRET, SkipReason.SECRET_FILE),
        (RULES, FileKind.GENERATED, SkipReason.GENERATED_FILE),
    ],
)
@pytest.mark.parametrize("is_invoked", [False, True])
def test_exclusions_apply_to_invoked_requests_too(
    rules: SkipRules, kind: FileKind, expected: SkipReason, is_invoked: bool
) -> None:
    context = context_at("a = |", is_invoked=is_invoked)

    assert find_skip_reason(context, rules, kind=kind, has_selection=False) is expected


def test_a_selection_skips_only_automatic_requests() -> None:
    context = context_at("a = |")
    skipped = find_skip_reason(context, RULES, kind=FileKind.NORMAL, has_selection=True)
    invoked = replace(context, is_invoked=True)

    assert skipped is SkipReason.SELECTION
    assert find_skip_reason(invoked, RULES, kind=FileKind.NORMAL, has_selection=True) is None


def test_invoked_requests_are_sent_in_any_context() -> None:
    for text in ("a = 1;|", "# why |", "a = | + b", "|"):
        assert skip_reason(text, is_invoked=True) is None
