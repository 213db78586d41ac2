"""Suggests the next edit: a change of lines near the cursor or away from it.

Editors request a next edit when there is no suggestion at the cursor, and after an accepted edit.
At most one request is in flight. A newer request, or a change of a text, cancels it.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from caret_ls import frames
from caret_ls.completion_client import CompletionClient, GatewayApi
from caret_ls.completion_context import CompletionContext
from caret_ls.completion_provider import MODE_OFF_CODES, REASONS
from caret_ls.content_exclusion import is_excluded
from caret_ls.file_kind import FileKind
from caret_ls.frames import Frame, RequestContext
from caret_ls.gateway_connection import RequestEnded
from caret_ls.mode_choice import CompletionMode
from caret_ls.next_edit.edit_outcomes import EditOutcomes
from caret_ls.next_edit.recent_edits import RecentEdits, RecordedEdit
from caret_ls.next_edit.sent_lines import EditorDiagnostic, LineEdit, SentLines, find_sent_lines
from caret_ls.outcome_tracker import ShownSuggestion
from caret_ls.policy_cache import PolicyCache
from caret_ls.settings import Settings
from caret_ls.skip_rules import SkipReason
from caret_ls.status_board import StatusBoard
from caret_ls.text_document import Position, TextEdit
from caret_ls.workspace import OpenFile, OpenFiles

# Before a request, in addition to the pause before an inline suggestion. An edit draws the eye away
# from the cursor, so it is suggested only when the user has stopped typing.
PAUSE_S: Final = 0.3
_MAX_RESPONSE_S: Final = 10.0  # by then, the user is probably editing another place
# Finish reasons of a request that succeeded, even if it proposes no edit.
_COMPLETE_REASONS: Final = ("stop", "length", "filtered")
# Error codes if the policy, the API key or the tenant's models do not allow edits.
_OFF_CODES: Final = (*MODE_OFF_CODES, "mode_unavailable")


@dataclass(frozen=True, slots=True)
class EditRequest:
    uri: str
    position: Position  # of the cursor
    diagnostics: Sequence[EditorDiagnostic] = ()  # with line numbers of the file
    is_follow_up: bool = False  # the user has just accepted an edit


@dataclass(frozen=True, slots=True)
class NextEdit:
    id: str  # of its request on the connection
    request_id: str  # the ID that all gateways know
    uri: str
    version: int  # the editor's number of the text that the edit fits
    edit: LineEdit
    sent_s: float | None  # when the request was sent; None: the edit was there already


@dataclass(frozen=True, slots=True)
class EditState:
    """The state that next edits depend on."""

    files: OpenFiles
    board: StatusBoard
    policies: PolicyCache
    client: CompletionClient
    build_request_context: Callable[[OpenFile], RequestContext]
    excluded_globs: Callable[[OpenFile], Sequence[str]]
    get_settings: Callable[[], Settings]
    now_s: Callable[[], float]  # monotonic time
    new_id: Callable[[], str]
    # Called with the file's URI when the file contains the new text of an accepted edit.
    on_applied: Callable[[str, ShownSuggestion], None]


class NextEdits:
    def __init__(
        self,
        state: EditState,
        gateway: GatewayApi,
        outcomes: EditOutcomes,
        *,
        pause_s: float = PAUSE_S,
    ) -> None:
        self._state = state
        self._gateway = gateway
        self._outcomes = outcomes
        self._pause_s = pause_s
        self._recent = RecentEdits()
        self._task: asyncio.Task[NextEdit | SkipReason] | None = None
        # File and revision of the last request that has ended, even with an error. For the same
        # revision, no second request is sent. None: no request has ended yet.
        self._answered: tuple[str, int] | None = None
        self._suggested: NextEdit | None = None  # the result of that request; None: no edit
        self._is_displayed = False  # whether the editor has shown `_suggested`
        self._accepted: NextEdit | None = None  # the editor's next change applies it

    async def suggest(self, request: EditRequest) -> NextEdit | SkipReason:
        """Return the next edit of a file, or why there is none.

        Cancelling this call also cancels the request at the gateway.
        """
        self.cancel()
        task = self._task = asyncio.create_task(self._suggest(request))
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
        result = SkipReason.NEWER_KEYSTROKE if task.cancelled() else task.result()
        if isinstance(result, NextEdit):
            self._outcomes.offer(
                result.uri,
                result.id,
                request_id=result.request_id,
                now_s=self._state.now_s(),
                sent_s=result.sent_s,
            )
        return result

    def cancel(self) -> None:
        """Cancel the request in flight."""
        if self._task is not None:
            self._task.cancel()

    # --- events of the editor

    def on_change(self, file: OpenFile, edit: TextEdit) -> None:
        """Record a change, and cancel the request in flight, because it was for the text before."""
        self.cancel()
        self._outcomes.on_change(file.uri, self._state.now_s())
        accepted, self._accepted = self._accepted, None
        if accepted is not None and accepted.uri == file.uri:
            self._note_applied(file, accepted)
        if file.kind is FileKind.NORMAL and not self._is_excluded(file):
            self._recent.record(file, edit.lines)

    def on_close(self, uri: str) -> None:
        self._outcomes.on_change(uri, self._state.now_s())
        self._recent.on_close(uri)

    def on_displayed(self, id: str) -> None:
        self._outcomes.on_displayed(id, self._state.now_s())
        if self._suggested is not None and self._suggested.id == id:
            self._is_displayed = True

    def on_accepted(self, id: str) -> None:
        self._outcomes.on_accepted(id, self._state.now_s())
        if self._suggested is not None and self._suggested.id == id:
            self._accepted = self._suggested

    def on_dismissed(self, id: str) -> None:
        self._outcomes.on_dismissed(id, self._state.now_s())

    def report_long_shown(self) -> None:
        self._outcomes.report_long_shown(self._state.now_s())

    # --- internals

    async def _suggest(self, request: EditRequest) -> NextEdit | SkipReason:
        if not request.is_follow_up:
            await asyncio.sleep(self._pause_s)
        file = self._state.files.get(request.uri)
        if file is None:
            return SkipReason.FILE_CLOSED
        reason = self._find_skip_reason(file)
        if reason is not None:
            return reason
        recent = self._list_recent(file)
        file_revision = (file.uri, file.revision)
        if not recent:
            return SkipReason.NOTHING_TO_SUGGEST
        if file_revision != self._answered:
            result = await self._request_edit(file, request, recent)
            self._answered, self._is_displayed = file_revision, False
            self._suggested = result if isinstance(result, NextEdit) else None
            return result
        # The editor may have cancelled the request before the result reached it. It gets the result
        # now, unless the edit was already on the screen.
        if self._is_displayed or self._suggested is None:
            return SkipReason.NOTHING_TO_SUGGEST
        return replace(self._suggested, sent_s=None)

    def _note_applied(self, file: OpenFile, accepted: NextEdit) -> None:
        """Call `on_applied` if the file contains the new text of the accepted edit."""
        start, text = file.buffer.to_offset(accepted.edit.start), accepted.edit.new_text
        if text and file.text.startswith(text, start):
            applied = ShownSuggestion(accepted.id, start, text, request_id=accepted.request_id)
            self._state.on_applied(file.uri, applied)

    def _find_skip_reason(self, file: OpenFile) -> SkipReason | None:
        state, settings = self._state, self._state.get_settings()
        modes = state.policies.automatic_modes(file.repository_name, state.now_s())
        conditions = (
            (state.board.is_paused, SkipReason.PAUSED),
            (not settings.next_edit, SkipReason.EDIT_OFF),
            (file.language.lower() in settings.disabled_languages, SkipReason.LANGUAGE_OFF),
            (state.board.signed_out_reason is not None, SkipReason.SIGNED_OUT),
            (not state.board.is_connected, SkipReason.OFFLINE),
            (CompletionMode.EDIT not in modes, SkipReason.EDIT_OFF),
            (file.has_selection, SkipReason.SELECTION),
            (self._is_excluded(file), SkipReason.EXCLUDED),
            (file.kind is FileKind.SECRET, SkipReason.SECRET_FILE),
            (file.kind is FileKind.GENERATED, SkipReason.GENERATED_FILE),
            (
                state.client.is_backing_off,
                SkipReason.OVER_BUDGET if state.board.is_over_budget else SkipReason.OVERLOADED,
            ),
        )
        return next((reason for is_true, reason in conditions if is_true), None)

    def _is_excluded(self, file: OpenFile) -> bool:
        return is_excluded(file.path, self._state.excluded_globs(file))

    def _list_recent(self, file: OpenFile) -> list[RecordedEdit]:
        """Return the recent edits that may be sent with a request for the file."""
        globs = self._state.excluded_globs(file)
        return self._recent.list(file.repository, lambda path: not is_excluded(path, globs))

    async def _request_edit(
        self, file: OpenFile, request: EditRequest, recent: Sequence[RecordedEdit]
    ) -> NextEdit | SkipReason:
        context = replace(
            file.context_at(request.position, is_invoked=False),
            language=self._state.client.select_language(file.language),
            mode=CompletionMode.EDIT,
        )
        lines = find_sent_lines(file.text, request.position, context)
        frame = self._build_frame(
            file, context, recent, lines.select_diagnostics(request.diagnostics)
        )
        version, sent_s = file.version, self._state.now_s()
        try:
            async with asyncio.timeout(_MAX_RESPONSE_S):
                done = await self._read_done(frame)
        except TimeoutError:
            return SkipReason.OVERLOADED
        except RequestEnded as error:
            return self._on_ended(file, error.code, error.retry_after_s)
        edit = _to_file_edit(lines, done.get("edit"))
        if edit is None:
            return self._on_ended(file, str(done.get("finish_reason")), None)
        return NextEdit(frame["id"], _request_id_of(done), file.uri, version, edit, sent_s)

    def _build_frame(
        self,
        file: OpenFile,
        context: CompletionContext,
        recent: Sequence[RecordedEdit],
        diagnostics: Sequence[EditorDiagnostic],
    ) -> Frame:
        frame = frames.build_complete(
            self._state.new_id(),
            context,
            self._state.build_request_context(file),
            trigger="automatic",
        )
        return frame | {
            "recent_edits": [edit.to_fields() for edit in recent],
            "diagnostics": [diagnostic.to_fields() for diagnostic in diagnostics],
        }

    async def _read_done(self, frame: Frame) -> Frame:
        """Send the request and return its last frame. Raises RequestEnded."""
        async with self._gateway.request(frame) as responses:
            async for response in responses:
                if response["type"] == "done":
                    return response
        raise RequestEnded("offline")

    def _on_ended(self, file: OpenFile, code: str, retry_after_s: float | None) -> SkipReason:
        """Return why there is no edit; `code` is a finish reason or an error code.

        Also remember what the code says: the time to wait, an unknown language or an unserved mode.
        """
        self._state.client.back_off(code, retry_after_s)
        if code in _COMPLETE_REASONS:
            return SkipReason.NOTHING_TO_SUGGEST
        if code == "unknown_language":
            self._state.client.mark_unknown_language(file.language)
        if code == "no_pool":
            self._state.policies.mark_unserved(CompletionMode.EDIT)
        if code in _OFF_CODES:
            self._state.policies.invalidate()
            return SkipReason.EDIT_OFF
        return REASONS.get(code, SkipReason.REFUSED)


def _to_file_edit(lines: SentLines, edit: object) -> LineEdit | None:
    """Convert the field `edit` of a `done` frame, which may be any JSON value.

    None: it is not an edit of the lines that were sent, or it changes nothing.
    """
    if not isinstance(edit, dict):
        return None
    start_line, end_line, text = (edit.get(name) for name in ("start_line", "end_line", "text"))
    # Not isinstance: a bool is also an int.
    if type(start_line) is not int or type(end_line) is not int or not isinstance(text, str):
        return None
    return lines.to_file_edit(start_line, end_line, text)


def _request_id_of(done: Frame) -> str:
    meta = done.get("meta")
    return str(meta.get("request_id", "")) if isinstance(meta, dict) else ""
