"""Messages for chats, for docstrings, and for choosing the mode of a suggestion.

`server` and `edit_features` have the other messages. platform/docs/editors.md has examples.

$/caret/chat            request: {"token", "turns": [{"role", "text", "command"}], "uri",
                        "selection": {"start", "end"}, "hasOpenFiles"}. The editor chooses the
                        token, which names this chat in the other messages. Response at the end of
                        the answer: {"finishReason", "reason"}. The request can be cancelled
$/caret/chatContext     to the editor: {"token", "files", "selection": [first line, last line],
                        "withheld"}: the files and lines that are sent with the question. Lines
                        count from 1. `withheld`: path of the current file if it must not be sent
$/caret/chatText        to the editor: {"token", "text"}: the next part of the answer
$/caret/writeDocstring  request: {"uri", "line"}, with the line from 0. Response:
                        {"edit": {"range", "newText"}} with an empty range (text is only inserted),
                        or {"reason"}
caret.useMode           command with the arguments `uri` and `mode` (`block` or `docstring`): the
                        next suggestion that the user invokes in the file has this mode
"""

from collections.abc import Callable
from typing import Any, Final

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from caret_ls.chat import ChatRequest, SentContext
from caret_ls.chat_context import ChatCommand, ConversationTurn
from caret_ls.lsp_conversions import to_position
from caret_ls.mode_choice import CompletionMode
from caret_ls.session import Session
from caret_ls.skip_rules import SkipReason

CHAT: Final = "$/caret/chat"
CHAT_CONTEXT: Final = "$/caret/chatContext"
CHAT_TEXT: Final = "$/caret/chatText"
WRITE_DOCSTRING: Final = "$/caret/writeDocstring"
USE_MODE: Final = "caret.useMode"


def add_assistant_features(server: LanguageServer, get_session: Callable[[], Session]) -> None:
    """Register the handlers of the messages above."""

    @server.feature(CHAT)
    async def chat(params: Any) -> dict[str, str | None]:
        token = str(params.token)

        def send_text(text: str) -> None:
            server.protocol.notify(CHAT_TEXT, {"token": token, "text": text})

        def send_context(context: SentContext) -> None:
            server.protocol.notify(CHAT_CONTEXT, {"token": token, **_to_json(context)})

        result = await get_session().chat.ask(
            _to_chat_request(params), on_context=send_context, on_text=send_text
        )
        return {"finishReason": result.finish_reason, "reason": result.reason}

    @server.feature(WRITE_DOCSTRING)
    async def write_docstring(params: Any) -> dict[str, Any]:
        result = await get_session().docstrings.write(str(params.uri), int(params.line))
        if isinstance(result, SkipReason):
            return {"reason": result.value}
        position = types.Position(result.position.line, result.position.units)
        return {"edit": types.TextEdit(types.Range(position, position), result.text)}

    @server.command(USE_MODE)
    def use_mode(uri: str, mode: str) -> None:
        get_session().completions.request_mode(uri, CompletionMode(mode))


def _to_chat_request(params: Any) -> ChatRequest:
    """Convert the parameters. pygls makes an object with their fields as attributes."""
    turns = tuple(_to_turn(turn) for turn in params.turns)
    selection = getattr(params, "selection", None)
    return ChatRequest(
        turns,
        getattr(params, "uri", None),
        selection and to_position(selection.start),
        selection and to_position(selection.end),
        has_open_files=getattr(params, "hasOpenFiles", True),
    )


def _to_turn(turn: Any) -> ConversationTurn:
    command = getattr(turn, "command", None)
    return ConversationTurn(str(turn.role), str(turn.text), command and ChatCommand(command))


def _to_json(context: SentContext) -> dict[str, Any]:
    return {
        "files": list(context.files),
        "selection": context.selection and list(context.selection),
        "withheld": context.withheld,
    }
