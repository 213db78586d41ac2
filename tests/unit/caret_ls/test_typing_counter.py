"""Characters that were typed by hand are counted by language."""

import pytest

from caret_ls.text_document import TextEdit
from caret_ls.typing_counter import EVERY_S, MAX_LANGUAGES, TypingCount, is_typed


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (TextEdit(0, deleted=0, inserted="a"), True),
        (TextEdit(0, deleted=0, inserted="()"), True),  # the editor adds the closing bracket
        (TextEdit(0, deleted=1, inserted=")"), True),  # the user types over this bracket
        (TextEdit(0, deleted=0, inserted="\n        "), True),  # the editor indents the new line
        (TextEdit(0, deleted=0, inserted="pasted"), False),
        (TextEdit(0, deleted=1, inserted=""), False),
        (TextEdit(0, deleted=7, inserted="a"), False),
    ],
)
def test_edits_made_by_one_key_are_typed(edit: TextEdit, expected: bool) -> None:
    assert is_typed(edit) is expected


def test_counts_are_returned_once_per_interval() -> None:
    typing_count = TypingCount()
    assert typing_count.take_due(0.0) is None  # begins to count
    for language in ("python", "go", "python"):
        typing_count.add(language)

    assert typing_count.take_due(EVERY_S - 1) is None
    assert typing_count.take_due(EVERY_S) == {"python": 2, "go": 1}
    assert typing_count.take_due(3 * EVERY_S) is None  # nothing was typed since


def test_the_number_of_languages_is_bounded() -> None:
    typing_count = TypingCount()
    typing_count.take_due(0.0)  # begins to count

    for number in range(50):
        typing_count.add(f"language-{number}")

    counts = typing_count.take_due(EVERY_S)

    assert counts is not None
    assert len(counts) == MAX_LANGUAGES
