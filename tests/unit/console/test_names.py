"""What languages and editors are called on pages."""

from collections import Counter

import pytest

from console.insight.names import named
from inference.gateway.editors import EDITORS
from inference.gateway.languages import LANGUAGES

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


@pytest.mark.parametrize("kind", _KNOWN)
def test_no_two_that_a_gateway_knows_are_called_the_same(kind: str) -> None:
    """Each is a line of a table, with numbers of its own."""
    names = Counter(named(kind, value) for value in _KNOWN[kind])

    assert not [name for name, times in names.items() if times > 1]
