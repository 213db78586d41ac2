import pytest
from hypothesis import given
from hypothesis import strategies as st

from caret_ls.suggestion import create_suggestion
from caret_ls.suggestion_cache import MAX_SUGGESTIONS, SuggestionCache
from tests.unit.caret_ls.places import place_in

ABOVE = "def area(self):\n"


def cache_of(text: str, suggestion: str, **more: str) -> SuggestionCache:
    cache = SuggestionCache()
    cache.store(create_suggestion(place_in(text, **more), suggestion, id="1"))
    return cache


def found(cache: SuggestionCache, text: str, **more: str) -> tuple[str, int] | None:
    """Return the remaining text, and how many characters behind the cursor it replaces."""
    remainder = cache.find(place_in(text, **more))
    return None if remainder is None else (remainder.text, remainder.replaces)


@pytest.mark.parametrize(
    ("text", "left"),
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
def test_what_was_typed_into_a_suggestion_leaves_the_rest(text: str, left: str | None) -> None:
    cache = cache_of(ABOVE + "    |\n", "return self.width")

    assert found(cache, text) == (None if left is None else (left, 0))


@given(st.integers(0, 29))
def test_over_lines_it_is_typed_through_too(num_typed: int) -> None:
    text = "if a:\n        b()\n    return c"
    cache = cache_of(ABOVE + "    |\n", text)

    left = found(cache, ABOVE + "    " + text[:num_typed] + "|\n")

    assert left == ((text[num_typed:], 0) if text[num_typed:].strip() else None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = f(|)\n", ("b, c) + 1", 1)),
        ("a = f(|)", None),
        ("a = f(|))\n", None),
        ("a = f(|x)\n", None),
        ("a = f(|c)\n", None),
    ],
)
def test_what_the_editor_closed_is_replaced(text: str, expected: tuple[str, int] | None) -> None:
    assert found(cache_of("a = |\n", "f(b, c) + 1"), text) == expected


def test_where_nothing_was_suggested_is_known_for_that_very_place() -> None:
    cache = cache_of("a = |\n", "")

    assert found(cache, "a = |\n") == ("", 0)
    assert found(cache, "a = b|\n") is None


def test_a_newer_suggestion_takes_the_place_of_the_one_before() -> None:
    cache = cache_of("a = |\n", "old")
    cache.store(create_suggestion(place_in("a = |\n"), "new", id="2"))

    assert found(cache, "a = |\n") == ("new", 0)


def test_the_same_text_in_another_file_is_another_place() -> None:
    cache = cache_of("a = |\n", "b")

    assert found(cache, "a = |\n", uri="file:///shop/b.py") is None


def test_the_least_recently_used_is_forgotten() -> None:
    cache = SuggestionCache()
    for number in range(MAX_SUGGESTIONS):
        cache.store(create_suggestion(place_in(f"a{number} = |"), "b", id=str(number)))
    found(cache, "a0 = |")
    cache.store(create_suggestion(place_in("c = |"), "b", id="x"))

    assert len(cache) == MAX_SUGGESTIONS
    assert found(cache, "a0 = |") is not None
    assert found(cache, "a1 = |") is None


def test_a_file_s_suggestions_are_forgotten() -> None:
    cache = cache_of("a = |", "b")
    cache.store(create_suggestion(place_in("a = |", uri="file:///shop/b.py"), "c", id="2"))
    cache.remove("file:///shop/a.py")

    assert len(cache) == 1
    cache.remove()
    assert len(cache) == 0


def test_a_very_long_line_is_asked_for_anew() -> None:
    line = "x" * 2_000
    cache = cache_of(f"{line}|", "b")

    assert found(cache, f"{line}|") is None
