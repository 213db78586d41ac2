"""The definitions of a file, in an order that stays the same."""

from caret_ls.definitions.definition_lookup import MAX_CHARS, StableDefinitions
from caret_ls.frames import FrameDefinition


def _definition(name: str, num_chars: int = 100) -> FrameDefinition:
    """Return a definition whose path and text have `num_chars` characters together."""
    return FrameDefinition("a.py", name.ljust(num_chars - len("a.py")))


def _names(definitions: StableDefinitions) -> list[str]:
    return [definition.text.strip() for definition in definitions]


def test_a_definition_is_added_at_the_end() -> None:
    definitions = StableDefinitions()
    for name in ("b", "a", "c"):
        definitions.add(name, _definition(name))

    assert _names(definitions) == ["b", "a", "c"]


def test_a_newer_definition_of_a_symbol_replaces_the_older_one_in_its_place() -> None:
    definitions = StableDefinitions()
    definitions.add("a", _definition("old"))
    definitions.add("b", _definition("b"))
    definitions.add("a", _definition("new"))

    assert _names(definitions) == ["new", "b"]


def test_two_names_of_one_definition_count_once() -> None:
    definitions = StableDefinitions()
    definitions.add("a", _definition("a"))
    definitions.add("self.a", _definition("a"))

    assert _names(definitions) == ["a"]


def test_a_full_list_loses_its_older_half_at_once() -> None:
    definitions = StableDefinitions()
    for number in range(MAX_CHARS // 100):  # eight definitions of 100 characters
        definitions.add(str(number), _definition(str(number)))
    assert _names(definitions)[0] == "0"

    definitions.add("last", _definition("last"))

    # Half of MAX_CHARS is kept: four definitions, including the new one.
    assert _names(definitions) == ["5", "6", "7", "last"]


def test_a_single_long_definition_stays() -> None:
    definitions = StableDefinitions()
    definitions.add("a", _definition("a", 2 * MAX_CHARS))

    assert _names(definitions) == ["a"]
