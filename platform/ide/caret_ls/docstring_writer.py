"""Writes a docstring for the function at a line of a file.

The result is one edit. If the file changes before the text arrives, there is no edit.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from caret_ls import frames
from caret_ls.completion_client import GatewayApi
from caret_ls.completion_context import CompletionContext
from caret_ls.completion_provider import MODE_OFF_CODES, REASONS
from caret_ls.docstring_syntax import DocstringPlace, find_docstring_place
from caret_ls.frames import RequestContext
from caret_ls.gateway_connection import RequestEnded
from caret_ls.mode_choice import CompletionMode
from caret_ls.skip_rules import KIND_REASONS, SkipReason
from caret_ls.status_board import StatusBoard
from caret_ls.text_document import Position, split_lines
from caret_ls.workspace import OpenFile, OpenFiles

_COMPLETE_REASONS: Final = ("stop", "length")
_QUOTES: Final = '"""'


@dataclass(frozen=True, slots=True)
class DocstringEdit:
    uri: str
    position: Position  # where the text is inserted: the start of a line
    text: str  # the docstring and a line end


@dataclass(frozen=True, slots=True)
class WriterState:
    """The state that the writer depends on."""

    files: OpenFiles
    board: StatusBoard
    modes_of: Callable[[str], frozenset[str]]  # modes that are allowed in the named repository
    can_send: Callable[[OpenFile], bool]  # False: excluded, secret or generated
    build_request_context: Callable[[OpenFile], RequestContext]
    new_id: Callable[[], str]


class DocstringWriter:
    def __init__(self, state: WriterState, gateway: GatewayApi) -> None:
        self._state = state
        self._gateway = gateway

    async def write(self, uri: str, line: int) -> DocstringEdit | SkipReason:
        """Return the edit that adds a docstring to the function at the line, which counts from 0.

        If there is no edit, return the reason.
        """
        file = self._state.files.get(uri)
        if file is None:
            return SkipReason.FILE_CLOSED
        reason = self._find_prohibition(file)
        if reason is not None:
            return reason
        lines = [text.rstrip("\r\n") for text in split_lines(file.text)]
        place = find_docstring_place(file.language, lines, line)
        if place is None:
            return SkipReason.NO_FUNCTION
        if place.has_docstring:
            return SkipReason.HAS_DOCSTRING
        revision = file.revision
        result = await self._request_text(file, place)
        if isinstance(result, SkipReason):
            return result
        if file.revision != revision:
            return SkipReason.FILE_CHANGED
        text = f"{place.opening}{_close(place, result)}"
        return DocstringEdit(uri, Position(place.line, 0), text + _line_end(file.text))

    def _find_prohibition(self, file: OpenFile) -> SkipReason | None:
        board = self._state.board
        conditions = (
            (board.signed_out_reason is not None, SkipReason.SIGNED_OUT),
            (not board.is_connected, SkipReason.OFFLINE),
            (
                CompletionMode.DOCSTRING not in self._state.modes_of(file.repository_name),
                SkipReason.DOCSTRING_OFF,
            ),
            (
                not self._state.can_send(file),
                KIND_REASONS.get(file.kind, SkipReason.EXCLUDED),
            ),
        )
        return next((reason for is_true, reason in conditions if is_true), None)

    async def _request_text(self, file: OpenFile, place: DocstringPlace) -> str | SkipReason:
        """Return the generated text after the opening marks, or why there is none."""
        lines = split_lines(file.text)
        context = CompletionContext(
            uri=file.uri,
            path=file.path,
            language=file.language,
            prefix="".join(lines[: place.line]) + place.opening,
            suffix="\n" + "".join(lines[place.line :]),
            is_invoked=True,
            mode=CompletionMode.DOCSTRING,
        )
        frame = frames.build_complete(
            self._state.new_id(),
            context,
            self._state.build_request_context(file),
            trigger="manual",
        )
        self._state.board.on_request_started()
        try:
            return await self._read_text(frame)
        except RequestEnded as error:
            if error.code in MODE_OFF_CODES:
                return SkipReason.DOCSTRING_OFF
            return REASONS.get(error.code, SkipReason.REFUSED)
        finally:
            self._state.board.on_request_ended()

    async def _read_text(self, frame: frames.Frame) -> str | SkipReason:
        """Send the request, and return the generated text or why there is none.

        Raises RequestEnded.
        """
        text = ""
        async with self._gateway.request(frame) as responses:
            async for response in responses:
                if response["type"] != "done":
                    text += str(response.get("text", ""))
                    continue
                reason = str(response.get("finish_reason"))
                if reason in _COMPLETE_REASONS and text.strip():
                    return text
                if reason in (*_COMPLETE_REASONS, "filtered"):
                    return SkipReason.NOTHING_TO_SUGGEST
                return REASONS.get(reason, SkipReason.REFUSED)
        return SkipReason.OFFLINE


def _close(place: DocstringPlace, text: str) -> str:
    """Return the text with the closing marks at its end.

    If the model has written the marks itself, the text after them is dropped.
    """
    end = _QUOTES if place.opening.endswith(_QUOTES) else "*/"
    body = text.partition(end)[0].rstrip()
    indent = place.opening[: len(place.opening) - len(place.opening.lstrip())]
    if "\n" not in body:
        return f"{body}{end}" if end == _QUOTES else f"{body} {end}"
    return f"{body}\n{indent}{end}" if end == _QUOTES else f"{body}\n{indent} {end}"


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
