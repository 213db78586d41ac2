"""The names of languages and editors on pages."""

from collections import Counter
from datetime import UTC, datetime

import pytest
from django.test import RequestFactory
from django.utils.translation import override

from caret.contracts.language_ids import LANGUAGES
from console.usage_filters.display_names import display_name
from console.usage_filters.filter_form import UNKNOWN, read_usage_filters
from inference.consumers.base import EDITORS

_KNOWN = {"language": LANGUAGES, "editor": EDITORS}


@pytest.mark.parametrize(
    ("kind", "value", "name"),
    [
        ("language", "python", "Python"),
        ("language", "typescriptreact", "TSX"),
        ("language", "cpp", "C++"),
        ("editor", "vscode", "VS Code"),
        ("editor", "neovim", "Neovim"),
        ("model", "caret-demo", "caret-demo"),
        ("language", "", ""),
    ],
)
def test_languages_and_editors_have_their_usual_names(kind: str, value: str, name: str) -> None:
    assert display_name(kind, value) == name


def test_a_second_id_of_a_language_is_added_to_its_name() -> None:
    assert display_name("language", "c++") == "C++ (c++)"  # `cpp` is the first one
    with override("de"):
        assert display_name("language", "text") == "Reiner Text (text)"


def test_names_that_are_words_are_translated() -> None:
    with override("de"):
        names = display_name("language", "plaintext"), display_name("editor", "openai")

    assert names == ("Reiner Text", "OpenAI-Bibliothek")


def test_a_filter_by_the_unknown_language_is_named_even_in_a_period_without_it() -> None:
    request = RequestFactory().get("/usage", {"language": UNKNOWN})
    usage_filters = read_usage_filters(request, now=datetime(2026, 11, 1, tzinfo=UTC))

    with override("en"):
        (language,) = usage_filters.list_filters(choices={}, teams={})

    assert [(option.title, option.is_selected) for option in language.choices] == [
        ("unknown", True)
    ]


def test_only_names_that_are_words_differ_between_languages() -> None:
    english = {name: display_name("language", name) for name in LANGUAGES}
    with override("de"):
        differing = {name for name in LANGUAGES if display_name("language", name) != english[name]}

    assert differing == {
        *("git-commit", "git-rebase", "gitcommit", "jsonc", "plaintext", "search-result"),
        *("terraform-vars", "text"),
    }


@pytest.mark.parametrize("kind", _KNOWN)
def test_known_languages_and_editors_have_distinct_names(kind: str) -> None:
    """Each is a row of its own in tables, so equal names would look like a mistake."""
    names = Counter(display_name(kind, value) for value in _KNOWN[kind])

    assert not [name for name, times in names.items() if times > 1]
