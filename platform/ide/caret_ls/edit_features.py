"""Messages for next edits. platform/docs/editors.md has examples.

$/caret/nextEdit        request: {"uri", "position", "diagnostics": [{"line", "severity",
                        "message"}], "isFollowUp"}. The severity is `error`, `warning`,
                        `information` or `hint`; `isFollowUp` is true after an accepted edit.
                        Response: {"id", "version", "edit": {"range", "newText"}} or {"reason"}.
                        `version` is the version of the text that the edit fits. The request can
                        be cancelled, and a change of the text cancels it
$/caret/editDisplayed   from the editor: {"id"} when the edit is on the screen
$/caret/editAccepted    from the editor: {"id"} when the user accepts the edit, before the editor
                        changes the text
$/caret/editDismissed   from the editor: {"id"} when the edit is hidden
"""

from collections.abc import Callable
from typing import Any, Final

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from caret_ls.lsp_conversions import to_position
from caret_ls.next_edit.next_edits import EditRequest, NextEdit
from caret_ls.next_edit.sent_lines import EditorDiagnostic
from caret_ls.session import Session
from caret_ls.text_document import Position

NEXT_EDIT: Final = "$/caret/nextEdit"
EDIT_DISPLAYED: Final = "$/caret/editDisplayed"
EDIT_ACCEPTED: Final = "$/caret/editAccepted"
EDIT_DISMISSED: Final = "$/caret/editDismissed"


def add_edit_features(server: LanguageServer, get_session: Callable[[], Session]) -> None:
    """Register the handlers of the messages above."""

    @server.feature(NEXT_EDIT)
    async def suggest_edit(params: Any) -> dict[str, Any]:
        result = await get_session().next_edits.suggest(_to_edit_request(params))
        return _to_json(result) if isinstance(result, NextEdit) else {"reason": result.value}

    @server.feature(EDIT_DISPLAYED)
    def displayed(params: Any) -> None:
        get_session().next_edits.on_displayed(str(params.id))

    @server.feature(EDIT_ACCEPTED)
    def accepted(params: Any) -> None:
        get_session().next_edits.on_accepted(str(params.id))

    @server.feature(EDIT_DISMISSED)
    def dismissed(params: Any) -> None:
        get_session().next_edits.on_dismissed(str(params.id))


def _to_edit_request(params: Any) -> EditRequest:
    """Convert the parameters. pygls makes an object with their fields as attributes."""
    diagnostics = tuple(
        EditorDiagnostic(int(item.line), str(item.severity), str(item.message))
        for item in getattr(params, "diagnostics", ())
    )
    return EditRequest(
        str(params.uri),
        to_position(params.position),
        diagnostics,
        is_follow_up=getattr(params, "isFollowUp", False) is True,
    )


def _to_json(result: NextEdit) -> dict[str, Any]:
    edit = result.edit
    span = types.Range(_to_lsp_position(edit.start), _to_lsp_position(edit.end))
    return {
        "id": result.id,
        "version": result.version,
        "edit": types.TextEdit(span, edit.new_text),
    }


def _to_lsp_position(position: Position) -> types.Position:
    return types.Position(position.line, position.units)
