from dataclasses import replace
from typing import Any

import pytest

from caret_ls.file_kind import Nature
from caret_ls.skip_rules import Reason, Rules, reason_to_skip
from tests.unit.caret_ls.places import place_in

RULES = Rules()


def reason(text: str, rules: Rules = RULES, **more: Any) -> Reason | None:
    return reason_to_skip(place_in(text, **more), rules, nature=Nature.WRITTEN, has_selection=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = |", None),
        ("a = f(|)", None),
        ("a = f(|);", None),
        ("a = 1;|", Reason.STATEMENT_ENDED),
        ("}  |\nb", Reason.STATEMENT_ENDED),
        ("for (;|)", None),
        ("a = | + b", Reason.MID_LINE),
        ("# why |", Reason.IN_COMMENT),
        ("a = 'it|'", Reason.IN_STRING),
        (" \n|\n", Reason.BLANK_FILE),
        ("|\nb = 1", None),
    ],
)
def test_what_is_not_worth_asking_for(text: str, expected: Reason | None) -> None:
    assert reason(text) is expected


def test_comments_and_strings_are_asked_for_by_those_who_want_it() -> None:
    assert reason("# why |", Rules(in_comments=True)) is None
    assert reason("a = 'it|'", Rules(in_strings=True)) is None


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (Rules(is_paused=True), Reason.PAUSED),
        (Rules(languages_off=frozenset({"python"})), Reason.LANGUAGE_OFF),
    ],
)
def test_what_the_user_has_turned_off(rules: Rules, expected: Reason) -> None:
    assert reason("a = |", rules) is expected
    assert reason("a = |", rules, is_invoked=True) is None


@pytest.mark.parametrize(
    ("rules", "nature", "expected"),
    [
        (Rules(excluded=("a.*",)), Nature.WRITTEN, Reason.EXCLUDED),
        (Rules(is_allowed=False), Nature.WRITTEN, Reason.MODE_OFF),
        (RULES, Nature.SECRET, Reason.SECRET_FILE),
        (RULES, Nature.GENERATED, Reason.GENERATED_FILE),
    ],
)
@pytest.mark.parametrize("is_invoked", [False, True])
def test_what_nobody_may_ask_for(
    rules: Rules, nature: Nature, expected: Reason, is_invoked: bool
) -> None:
    place = place_in("a = |", is_invoked=is_invoked)

    assert reason_to_skip(place, rules, nature=nature, has_selection=False) is expected


def test_where_something_is_selected_nothing_is_asked_unless_by_a_key() -> None:
    place = place_in("a = |")
    skipped = reason_to_skip(place, RULES, nature=Nature.WRITTEN, has_selection=True)
    invoked = replace(place, is_invoked=True)

    assert skipped is Reason.SELECTION
    assert reason_to_skip(invoked, RULES, nature=Nature.WRITTEN, has_selection=True) is None


def test_by_a_key_it_is_asked_for_everywhere() -> None:
    for text in ("a = 1;|", "# why |", "a = | + b", "|"):
        assert reason(text, is_invoked=True) is None
