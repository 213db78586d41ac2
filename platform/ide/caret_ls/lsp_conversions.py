"""Converts between LSP's types and this package's."""

from typing import Final

from lsprotocol import types

from caret_ls.completion_provider import InlineItem, InlineRequest
from caret_ls.session import TextChange
from caret_ls.text_document import Position
from caret_ls.workspace import SelectedCompletion

SUGGESTION_ACCEPTED: Final = "caret.suggestionAccepted"


def to_inline_request(params: types.InlineCompletionParams) -> InlineRequest:
    invoked = types.InlineCompletionTriggerKind.Invoked
    is_invoked = params.context.trigger_kind == invoked
    selected_completion = _to_selected_completion(params.context.selected_completion_info)
    return InlineRequest(to_position(params.position), is_invoked, selected_completion)


def _to_selected_completion(info: types.SelectedCompletionInfo | None) -> SelectedCompletion | None:
    if info is None:
        return None
    return SelectedCompletion(to_position(info.range.start), to_position(info.range.end), info.text)


def to_text_change(change: types.TextDocumentContentChangeEvent) -> TextChange:
    """Convert a change. A change without a range replaces the whole text."""
    if isinstance(change, types.TextDocumentContentChangeWholeDocument):
        return TextChange(change.text)
    return TextChange(change.text, to_position(change.range.start), to_position(change.range.end))


def to_position(position: types.Position) -> Position:
    return Position(position.line, position.character)


def to_lsp_item(offer: InlineItem) -> types.InlineCompletionItem:
    start = types.Position(offer.position.line, offer.position.units)
    # `replaces` counts closing brackets and quotes after the cursor. Each is one UTF-16 code unit.
    end = types.Position(start.line, start.character + offer.replaces)
    return types.InlineCompletionItem(
        insert_text=offer.text,
        range=types.Range(start, end),
        command=types.Command("Accepted", SUGGESTION_ACCEPTED, arguments=[offer.id]),
    )
