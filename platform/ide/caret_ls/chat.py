"""Chats about the open files. The quality tier answers.

Files that must not be sent are left out. The editor keeps the conversation, and sends all of it
with each question.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Protocol

from caret_ls.chat_context import (
    MAX_SELECTION_CHARS,
    ChatContext,
    ConversationTurn,
    SelectedCode,
    build_body,
)
from caret_ls.chat_stream import ChatEnd, ChatFailed
from caret_ls.completion_provider import MODE_OFF_CODES, REASONS
from caret_ls.frames import FrameFile, RequestContext
from caret_ls.gateway_connection import Address
from caret_ls.mode_choice import CompletionMode
from caret_ls.skip_rules import KIND_REASONS, SkipReason
from caret_ls.status_board import StatusBoard
from caret_ls.text_document import Position
from caret_ls.workspace import OpenFile, OpenFiles

_MAX_FILE_CHARS: Final = 40_000  # of the current file, around the selection
# Error codes of the gateway (platform/docs/protocol.md).
_SIGNED_OUT_CODES: Final = (
    *("missing_api_key", "invalid_api_key", "revoked_api_key", "expired_api_key"),
    *("tenant_suspended", "trial_ended"),
)
_BUSY_CODES: Final = (
    *("gateway_at_capacity", "engine_busy", "engine_unavailable", "engine_timeout"),
    "snapshots_stale",
)
_REASONS: Final = (  # by error code or finish reason
    REASONS
    | dict.fromkeys(_SIGNED_OUT_CODES, SkipReason.SIGNED_OUT)
    | dict.fromkeys(_BUSY_CODES, SkipReason.OVERLOADED)
    | dict.fromkeys(MODE_OFF_CODES, SkipReason.CHAT_OFF)
    | {"filtered": SkipReason.WITHHELD}
)
_COMPLETE_REASONS: Final = ("stop", "length")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    turns: Sequence[ConversationTurn]  # at least one; the newest is last
    uri: str | None = None  # of the current file; None: there is none
    # The bounds of the selection. If nothing is selected, both are the position of the cursor. If
    # the editor sent no positions, both are None.
    start: Position | None = None
    end: Position | None = None
    has_open_files: bool = True  # whether other open files are sent


@dataclass(frozen=True, slots=True)
class ChatResult:
    finish_reason: str  # of the gateway; "" if `reason` is set
    reason: SkipReason | None = None  # why the answer is missing or incomplete


@dataclass(frozen=True, slots=True)
class SentContext:
    """The files and lines that are sent with a question. The editor shows them to the user."""

    files: tuple[str, ...]  # paths, the current one first
    selection: tuple[int, int] | None = None  # first and last line, from 1
    withheld: str | None = None  # path of the current file if it must not be sent


class ChatStream(Protocol):
    def __call__(
        self, address: Address, body: dict[str, Any], /
    ) -> AsyncGenerator[str | ChatEnd, None]:
        """Yield the texts of an answer, and then a ChatEnd. Raises ChatFailed."""


@dataclass(frozen=True, slots=True)
class ChatState:
    """The state that chats depend on."""

    files: OpenFiles
    board: StatusBoard
    modes_of: Callable[[str], frozenset[str]]  # modes that are allowed in the named repository
    can_send: Callable[[OpenFile], bool]  # False: excluded, secret or generated
    build_request_context: Callable[[OpenFile], RequestContext]
    get_address: Callable[[], Address | None]
    on_refused: Callable[[], None]  # called if the known policy is out of date


class Chat:
    def __init__(self, state: ChatState, stream: ChatStream) -> None:
        self._state = state
        self._stream = stream

    async def ask(
        self,
        request: ChatRequest,
        *,
        on_context: Callable[[SentContext], None],
        on_text: Callable[[str], None],
    ) -> ChatResult:
        """Ask the newest question, and pass each part of the answer to `on_text`.

        `on_context` is called first, unless nothing may be sent. Cancelling this call cancels the
        answer at the gateway.
        """
        file = None if request.uri is None else self._state.files.get(request.uri)
        reason = self._find_prohibition(request, file)
        address = self._state.get_address()
        if reason is not None or address is None:
            return ChatResult("", reason or SkipReason.SIGNED_OUT)
        context = self._build_context(request, file)
        on_context(_describe(context, file))
        self._state.board.on_request_started()
        try:
            return await self._receive(address, request.turns, context, on_text)
        finally:
            self._state.board.on_request_ended()

    async def _receive(
        self,
        address: Address,
        turns: Sequence[ConversationTurn],
        context: ChatContext,
        on_text: Callable[[str], None],
    ) -> ChatResult:
        """Send the conversation and return how the answer ended.

        A model may reject a system message. The conversation is then sent again without one.
        """
        try:
            return await self._stream_once(address, build_body(turns, context), on_text)
        except ChatFailed as error:
            if error.code != "invalid_messages":
                return self._to_result(error)
        body = build_body(turns, context, has_system_role=False)
        try:
            return await self._stream_once(address, body, on_text)
        except ChatFailed as error:
            return self._to_result(error)

    async def _stream_once(
        self, address: Address, body: dict[str, Any], on_text: Callable[[str], None]
    ) -> ChatResult:
        """Send one request, and pass the texts of its answer to `on_text`. Raises ChatFailed."""
        async with aclosing(self._stream(address, body)) as parts:
            async for part in parts:
                if isinstance(part, ChatEnd):
                    return _build_result(part.finish_reason)
                on_text(part)
        raise ChatFailed("offline")

    def _to_result(self, error: ChatFailed) -> ChatResult:
        reason = _REASONS.get(error.code, SkipReason.REFUSED)
        if reason in (SkipReason.CHAT_OFF, SkipReason.EXCLUDED):
            self._state.on_refused()
        return ChatResult("", reason)

    def _find_prohibition(self, request: ChatRequest, file: OpenFile | None) -> SkipReason | None:
        """Return why the question must not be sent; None if it may be sent."""
        if self._state.board.signed_out_reason is not None:
            return SkipReason.SIGNED_OUT
        repository = file.repository_name if file else ""
        if CompletionMode.CHAT not in self._state.modes_of(repository):
            return SkipReason.CHAT_OFF
        # A question about code of a file needs this file. Any other question is sent without a file
        # that must not be sent.
        is_about_code = request.start != request.end or request.turns[-1].command is not None
        if file is not None and is_about_code and not self._state.can_send(file):
            return KIND_REASONS.get(file.kind, SkipReason.EXCLUDED)
        return None

    def _build_context(self, request: ChatRequest, file: OpenFile | None) -> ChatContext:
        if file is None:
            return ChatContext()
        request_context = self._state.build_request_context(file)
        open_files = tuple(request_context.files) if request.has_open_files else ()
        if not self._state.can_send(file):
            return ChatContext(repository=file.repository_name, files=open_files)
        return ChatContext(
            path=file.path,
            repository=file.repository_name,
            selection=_find_selected_code(file, request),
            files=(_build_excerpt(file, request), *open_files),
        )


def _build_result(finish_reason: str) -> ChatResult:
    if finish_reason in _COMPLETE_REASONS:
        return ChatResult(finish_reason)
    return ChatResult("", _REASONS.get(finish_reason, SkipReason.REFUSED))


def _find_selected_code(file: OpenFile, request: ChatRequest) -> SelectedCode | None:
    """Return the selected code; for a command without a selection, the line of the cursor.

    None: the question is not about code of the file, or this code is blank.
    """
    if request.start is None or request.end is None:
        return None
    start, end = sorted(map(file.buffer.to_offset, (request.start, request.end)))
    is_selected = start != end
    if not is_selected and request.turns[-1].command is None:
        return None
    if not is_selected:
        start = file.text.rfind("\n", 0, start) + 1
        end = file.text.find("\n", end)
        end = len(file.text) if end < 0 else end
    text = file.text[start : min(end, start + MAX_SELECTION_CHARS)]
    first_line = file.text.count("\n", 0, start) + 1
    if not text.strip():
        return None
    return SelectedCode(file.path, file.language, text, first_line, is_selected=is_selected)


def _build_excerpt(file: OpenFile, request: ChatRequest) -> FrameFile:
    """Return the file's text; of a long file, only the text around the start of the selection."""
    text = file.text
    if len(text) > _MAX_FILE_CHARS:
        at = 0 if request.start is None else file.buffer.to_offset(request.start)
        start = text.rfind("\n", 0, max(at - _MAX_FILE_CHARS // 2, 0)) + 1
        text = text[start : start + _MAX_FILE_CHARS]
    return FrameFile(file.path, text, edited_at=0.0)


def _describe(context: ChatContext, file: OpenFile | None) -> SentContext:
    code = context.selection
    lines = None
    if code is not None:
        lines = (code.first_line, code.last_line)
    withheld = file.path if file is not None and not context.path else None
    return SentContext(tuple(sent_file.path for sent_file in context.files), lines, withheld)
