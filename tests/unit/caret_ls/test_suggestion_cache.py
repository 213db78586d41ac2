"""Cached suggestions are found while the user types their text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret_ls.suggestion import create_suggestion
from caret_ls.suggestion_cache import MAX_SUGGESTIONS, SuggestionCache
from tests.unit.caret_ls.contexts import context_at

ABOVE = "def area(self):\n"
LONG_LINE = "x" * 3_000  # longer than the part of a line that the cache uses to find a suggestion


def cache_of(text: str, suggestion: str, **fields: str) -> SuggestionCache:
    """Return a cache with one suggestion, which was requested at `|` in the text."""
    cache = SuggestionCache()
    cache.store(create_suggestion(context_at(text, **fields), suggestion, id="1"))
    return cache


def find(cache: SuggestionCache, text: str, **fields: str) -> tuple[str, int] | None:
    """Return the remaining text, and how many characters after the cursor it replaces."""
    remainder = cache.find(context_at(text, **fields))
    return None if remainder is None else (remainder.text, remainder.replaces)


@pytest.mark.parametrize(
    ("text", "expected_remainder"),
    [
        (ABOVE + "    |\n", "return self.width"),
        (ABOVE + "    r|\n", "eturn self.width"),
        (ABOVE + "    return self.|\n", "width"),
        (ABOVE + "    return self.width|\n", None),
        (ABOVE + "    x|\n", None),
        (ABOVE + "    ret |\n", None),
        (ABOVE + "   |\n", None),
        ("def rows(self):\n    r|\n", None),
        (ABOVE + "    r|\nb = 1\n", None),
    ],
)
def test_the_rest_of_a_partly_typed_suggestion_is_found(
    text: str, expected_remainder: str | None
) -> None:
    cache = cache_of(ABOVE + "    |\n", "return self.width")

    assert find(cache, text) == (None if expected_remainder is None else (expected_remainder, 0))


@given(st.integers(0, 29))  # the suggestion has 30 characters
def test_the_rest_of_a_partly_typed_multiline_suggestion_is_found(num_typed: int) -> None:
    text = "if a:\n        b()\n    return c"
    cache = cache_of(ABOVE + "    |\n", text)

    remainder = find(cache, ABOVE + "    " + text[:num_typed] + "|\n")

    assert remainder == ((text[num_typed:], 0) if text[num_typed:].strip() else None)


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_as_many_lines_may_be_typed_with_each_line_end(line_end: str) -> None:
    lines = ["if a:", "b()", "c()", "d()", "return e"]
    cache = cache_of(ABOVE + "    |\n", line_end.join(lines))

    remainder = find(cache, ABOVE + "    " + line_end.join([*lines[:-1], "return "]) + "|\n")

    assert remainder == ("e", 0)


@pytest.mark.parametrize(
    ("text", "expected"),  # the remaining text, and the number of characters that it replaces
    [
        ("a = f(|)\n", ("b, c) + 1", 1)),
        ("a = f(|)", None),
        ("a = f(|))\n", None),
        ("a = f(|x)\n", None),
        ("a = f(|c)\n", None),
    ],
)
def test_a_bracket_closed_by_the_editor_is_replaced(
    text: str, expected: tuple[str, int] | None
) -> None:
    assert find(cache_of("a = |\n", "f(b, c) + 1"), text) == expected


def test_an_empty_suggestion_is_cached_for_its_exact_context() -> None:
    cache = cache_of("a = |\n", "")

    assert find(cache, "a = |\n") == ("", 0)
    assert find(cache, "a = b|\n") is None


def test_a_newer_suggestion_replaces_the_older_one() -> None:
    cache = cache_of("a = |\n", "old")
    cache.store(create_suggestion(context_at("a = |\n"), "new", id="2"))

    assert find(cache, "a = |\n") == ("new", 0)


def test_a_suggestion_is_not_found_in_another_file() -> None:
    cache = cache_of("a = |\n", "b")

    assert find(cache, "a = |\n", uri="file:///shop/b.py") is None


def test_the_least_recently_used_suggestion_is_evicted() -> None:
    cache = SuggestionCache()
    for number in range(MAX_SUGGESTIONS):
        cache.store(create_suggestion(context_at(f"a{number} = |"), "b", id=str(number)))
    find(cache, "a0 = |")
    cache.store(create_suggestion(context_at("c = |"), "b", id="x"))

    assert len(cache) == MAX_SUGGESTIONS
    assert find(cache, "a0 = |") is not None
    assert find(cache, "a1 = |") is None


def test_only_the_suggestions_of_the_file_are_removed() -> None:
    cache = cache_of("a = |", "b")
    cache.store(create_suggestion(context_at("a = |", uri="file:///shop/b.py"), "c", id="2"))

    cache.remove("file:///shop/a.py")

    assert len(cache) == 1


def test_the_end_of_a_very_long_line_finds_its_suggestion() -> None:
    cache = cache_of(f"{LONG_LINE}|", "bcd")

    assert find(cache, f"{LONG_LINE}|") == ("bcd", 0)
    assert find(cache, f"{LONG_LINE}b|") == ("cd", 0)


def test_a_very_long_line_with_another_end_finds_no_suggestion() -> None:
    cache = cache_of(f"{LONG_LINE}a|", "b")

    assert find(cache, f"{LONG_LINE}c|") is None
