"""The names of languages and editors on pages."""

from collections import Counter

import pytest
from django.utils.translation import override

from console.usage_filters.display_names import named
from inference.consumers.base import EDITORS
from inference.gateway.language_ids import LANGUAGES

_KNOWN = {"language": LANGUAGES, "editor": EDITORS}


@pytest.mark.parametrize(
    ("kind", "value", "name"),
    [
        ("language", "python", "Python"),
        ("language", "typescriptreact", "TSX"),
        ("language", "c++", "C++ (c++)"),
        ("editor", "vscode", "VS Code"),
        ("editor", "neovim", "Neovim"),
        ("model", "caret-demo", "caret-demo"),
        ("language", "", ""),
    ],
)
def test_they_have_the_names_that_people_use(kind: str, value: str, name: str) -> None:
    assert named(kind, value) == name


def test_names_that_are_words_are_the_readers() -> None:
    with override("de"):
        names = named("language", "plaintext"), named("language", "text")

    assert names == ("Reiner Text", "Reiner Text (text)")


def test_no_other_name_is_taken_for_a_word_of_the_console() -> None:
    english = {name: named("language", name) for name in LANGUAGES}
    with override("de"):
        differing = {name for name in LANGUAGES if named("language", name) != english[name]}

    assert differing == {
        *("git-commit", "git-rebase", "gitcommit", "jsonc", "plaintext", "search-result"),
        *("terraform-vars", "text"),
    }


@pytest.mark.parametrize("kind", _KNOWN)
def test_no_two_that_a_gateway_knows_are_called_the_same(kind: str) -> None:
    """Each is a row of a table, with separate figures."""
    names = Counter(named(kind, value) for value in _KNOWN[kind])

    assert not [name for name, times in names.items() if times > 1]
