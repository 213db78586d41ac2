"""Suggestions as items of a completion list, for editors without inline completion."""

import re
from typing import Final

from lsprotocol import types

from caret_ls.text_document import utf16_length

# Editors request inline completion after any key, but a list only after a letter or one of these.
TRIGGER_CHARACTERS: Final = (" ", ".", "(", "[", "{", "=", ",", ":")
_MAX_LABEL_CHARS: Final = 60
_WORD_AT_END: Final = re.compile(r"\w*\Z")


def needs_list(params: types.InitializeParams) -> bool:
    """Return whether the editor has no inline completion, and has not refused a list."""
    options = params.initialization_options
    if isinstance(options, dict) and options.get("completion_list") is False:
        return False
    text_document = params.capabilities.text_document
    return text_document is None or text_document.inline_completion is None


def to_completion_list(item: types.InlineCompletionItem, text_before: str) -> types.CompletionList:
    """Return a list with the suggestion as its only item.

    `text_before` is text before the cursor, at least its last word. Editors show an item only if it
    matches this word, so the item begins with the word.
    """
    assert item.range is not None
    assert isinstance(item.insert_text, str)
    match = _WORD_AT_END.search(text_before)
    word = match[0] if match else ""
    text = word + item.insert_text
    start = types.Position(item.range.start.line, item.range.start.character - utf16_length(word))
    return types.CompletionList(
        is_incomplete=True,  # the editor requests it again at the next key
        items=[
            types.CompletionItem(
                label=_label(text),
                detail="Caret",
                kind=types.CompletionItemKind.Text,
                documentation=text,
                filter_text=text,
                text_edit=types.TextEdit(types.Range(start, item.range.end), text),
                insert_text_mode=types.InsertTextMode.AsIs,
                command=item.command,
            )
        ],
    )


def _label(text: str) -> str:
    """Return the first line that is not blank, shortened."""
    first_line = next((line.strip() for line in text.splitlines() if line.strip()), text)
    return first_line[:_MAX_LABEL_CHARS]
