"""Suggestions as items of a completion list, for editors without inline completion."""

import pytest
from lsprotocol import types

from caret_ls.completion_list import needs_list, to_completion_list


def make_item(
    text: str, *, line: int = 0, column: int = 0, num_replaced: int = 0
) -> types.InlineCompletionItem:
    start = types.Position(line, column)
    end = types.Position(line, column + num_replaced)
    return types.InlineCompletionItem(insert_text=text, range=types.Range(start, end))


def initialize_params(*, has_inline: bool, options: object = None) -> types.InitializeParams:
    inline = types.InlineCompletionClientCapabilities() if has_inline else None
    text_document = types.TextDocumentClientCapabilities(inline_completion=inline)
    capabilities = types.ClientCapabilities(text_document=text_document)
    return types.InitializeParams(capabilities=capabilities, initialization_options=options)


def test_an_editor_without_inline_completion_gets_a_list_unless_its_options_refuse_it() -> None:
    assert needs_list(initialize_params(has_inline=False))
    assert needs_list(types.InitializeParams(capabilities=types.ClientCapabilities()))
    assert not needs_list(initialize_params(has_inline=True))
    assert not needs_list(initialize_params(has_inline=False, options={"completion_list": False}))


@pytest.mark.parametrize(
    ("before", "text", "word"),
    [
        ("return ", "a + b", ""),
        ("x = self.pa", "th", "pa"),
        ("a = größe", "_max", "größe"),
        ("\n", "    return a", ""),
        ("", "import os", ""),
    ],
)
def test_an_item_begins_with_the_word_before_the_cursor(before: str, text: str, word: str) -> None:
    column = len(before.rpartition("\n")[2])

    (item,) = to_completion_list(make_item(text, line=1, column=column), before).items

    assert isinstance(item.text_edit, types.TextEdit)
    assert item.text_edit.new_text == item.filter_text == word + text
    assert item.text_edit.range.start == types.Position(1, column - len(word))


def test_a_list_is_incomplete_and_shows_the_first_line() -> None:
    suggestions = to_completion_list(make_item("\n    return größe\n"), "def f():")

    assert suggestions.is_incomplete
    assert suggestions.items[0].label == "return größe"
    assert suggestions.items[0].documentation == "\n    return größe\n"


def test_text_after_the_cursor_is_replaced() -> None:
    (item,) = to_completion_list(make_item("1)", column=4, num_replaced=1), "f(1,").items

    assert isinstance(item.text_edit, types.TextEdit)
    assert item.text_edit.range == types.Range(types.Position(0, 4), types.Position(0, 5))
