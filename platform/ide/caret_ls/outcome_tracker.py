"""Tracks the outcomes of suggestions: shown, accepted in whole or in part, rejected, persisted.

A persisted outcome tells how much of accepted text is left after 30 seconds to 30 minutes. Editors
report few outcomes, so most are derived from the changes of the file:

- A change that inserts the whole rest of a suggestion accepts the suggestion.
- A change that inserts more than one character of it accepts this part.
- A suggestion that is typed to its end key by key is neither accepted nor rejected.
- A change above a suggestion only moves it. Any other change rejects it.
- A suggestion that was visible for less than MIN_SHOWN_S counts as not seen. It is then reported
  neither as shown nor as rejected, unless the user accepted it or a part of it.
- The shown outcome has the time for which the suggestion was visible. It is sent when the
  suggestion disappears, or once it has been visible for MAX_SHOWN_S.

Pure. Only a persisted outcome contains text of the file.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from caret_ls.edit_distance import edit_distance
from caret_ls.text_document import TextEdit

SPANS_S: Final = (30, 120, 300, 600, 1_800)  # from the acceptance to each check of the text
MIN_SHOWN_S: Final = 0.25
MAX_SHOWN_S: Final = 5.0
_MAX_TRACKED: Final = 64  # accepted texts
_MAX_REMEMBERED: Final = 512  # reported outcomes that must not be reported again
_MAX_COMPARED_CHARS: Final = 4_000  # of the present text; the rest of a longer one is ignored


class EditorOutcomeEvent(StrEnum):
    SHOWN = "shown"
    ACCEPTED = "accepted"
    PARTIALLY_ACCEPTED = "partially_accepted"
    REJECTED = "rejected"
    PERSISTED = "persisted"


@dataclass(frozen=True, slots=True)
class EditorOutcome:
    """An outcome of a suggestion.

    `after_ms` is the time since the suggestion appeared. For SHOWN, it is the time for which the
    suggestion was visible. For PERSISTED, it is the time since the acceptance.
    """

    id: str  # of the request on the connection
    event: EditorOutcomeEvent
    after_ms: int
    chars: int | None = None  # that were shown or accepted, or are left; None: all characters
    lines: int | None = None  # that were shown or accepted; None: all lines
    # Only for PERSISTED: edit distance, as a share of the accepted characters; at most 1.
    edited_ratio: float | None = None
    # Only for PERSISTED: the text as the user edited it; sent only if the user shares it.
    text: str | None = None
    request_id: str = ""  # the ID that all gateways know; "": not received
    display_ms: int | None = None  # only for SHOWN: see `_VisibleSuggestion.sent_s`


@dataclass(frozen=True, slots=True)
class ShownSuggestion:
    """A suggestion to show. Its text may begin with a lead, which the model did not generate."""

    id: str  # of the request on the connection
    at: int  # start in the file, in characters
    text: str
    num_lead_chars: int = 0  # the rest of the selected list item, and marks that open a docstring
    request_id: str = ""  # the ID that all gateways know; "": not received
    is_whole: bool = True  # False: more text may arrive (`OutcomeTracker.grow`)
    num_before: int = 0  # characters of the whole suggestion that were typed before it was shown
    sent_s: float | None = None  # when the user's request was sent; None: nobody waited for it


@dataclass(slots=True)
class _VisibleSuggestion:
    """A suggestion on the screen."""

    id: str
    at: int  # start in the file, in characters
    text: str  # including the consumed characters
    num_lead_chars: int  # as in ShownSuggestion; after a repeated request, consumed ones included
    shown_s: float  # when the editor got it
    request_id: str
    is_whole: bool
    initial_num_lead_chars: int  # num_lead_chars when it appeared
    num_before: int  # as in ShownSuggestion
    # The display latency is the time from sending the request to the first text on the screen.
    sent_s: float | None  # None: the suggestion was there before it was needed
    displayed_s: float  # when the editor had drawn it; equal to `shown_s` until it reports this
    num_consumed: int = 0  # number of its characters that are in the file now: typed or accepted
    num_accepted: int = 0  # number of these that were accepted in parts

    def consume(self, typed_text: str) -> str:
        """Count characters as consumed; return those that the model generated (not the lead)."""
        suggested_part = typed_text[max(self.num_lead_chars - self.num_consumed, 0) :]
        self.num_consumed += len(typed_text)
        return suggested_part


@dataclass(slots=True)
class _AcceptedSuggestion:
    id: str
    uri: str
    text: str  # at the acceptance
    start: int  # of the text in the file now, in characters
    end: int
    accepted_s: float
    request_id: str
    spans_s: list[int] = field(default_factory=lambda: list(SPANS_S))  # still to be checked

    def apply_edit(self, edit: TextEdit) -> None:
        """Move start and end by an edit of the file.

        Text that is inserted at the start or the end does not belong to the accepted text. If that
        text is empty now, start and end are equal, and an insertion there does not move them.
        """
        growth = len(edit.inserted) - edit.deleted
        deleted_end = edit.at + edit.deleted
        if deleted_end <= self.start and (edit.deleted or edit.at < self.end):  # before the text
            self.start, self.end = self.start + growth, self.end + growth
        elif edit.at < self.end:
            # The edit overlaps the text. Text deleted at the front moves the start.
            self.start = min(self.start, edit.at + len(edit.inserted))
            self.end = max(self.end, deleted_end) + growth


class OutcomeTracker:
    """Tracks suggestions and calls `send` with each outcome. Times are seconds of one clock."""

    def __init__(self, send: Callable[[EditorOutcome], None]) -> None:
        self._send = send
        # Outcomes that are sent only once, the oldest first.
        self._reported: OrderedDict[tuple[str, EditorOutcomeEvent], None] = OrderedDict()
        self._visible: dict[str, _VisibleSuggestion] = {}  # by file
        self._accepted: list[_AcceptedSuggestion] = []

    def show(self, uri: str, suggestion: ShownSuggestion, *, now_s: float) -> bool:
        """Note that a suggestion is shown; return False if it was visible before."""
        visible = self._visible.get(uri)
        if visible is not None and visible.id == suggestion.id:
            visible.num_lead_chars = visible.num_consumed + suggestion.num_lead_chars
            visible.text = visible.text[: visible.num_consumed] + suggestion.text
            visible.is_whole = suggestion.is_whole
            return False
        self._on_hidden(uri, now_s)
        self._visible[uri] = _VisibleSuggestion(
            suggestion.id,
            suggestion.at,
            suggestion.text,
            suggestion.num_lead_chars,
            now_s,
            suggestion.request_id,
            is_whole=suggestion.is_whole,
            initial_num_lead_chars=suggestion.num_lead_chars,
            num_before=suggestion.num_before,
            sent_s=suggestion.sent_s,
            displayed_s=now_s,
        )
        return True

    def on_displayed(self, uri: str, now_s: float) -> None:
        """Note that the editor has drawn the suggestion. Only some editors report this."""
        visible = self._visible.get(uri)
        if visible is not None and visible.displayed_s == visible.shown_s:
            visible.displayed_s = now_s

    def grow(self, id: str, text: str, *, is_whole: bool, request_id: str, now_s: float) -> None:
        """Replace a suggestion's text by a longer one that has arrived."""
        for uri, visible in list(self._visible.items()):
            if visible.id != id:
                continue
            lead = visible.text[: visible.initial_num_lead_chars]
            visible.text = lead + text[visible.num_before :]
            visible.is_whole = is_whole
            visible.request_id = request_id or visible.request_id
            # The suggestion ends if the user has already typed or accepted all of it.
            if visible.is_whole and visible.num_consumed >= len(visible.text):
                self._report_shown(visible, now_s, is_certain=visible.num_accepted > 0)
                del self._visible[uri]

    def dismiss(self, uri: str, now_s: float) -> None:
        """Note that the user has hidden the suggestion."""
        self._on_hidden(uri, now_s)

    def report_long_shown(self, now_s: float) -> None:
        """Report suggestions that have been visible for a long time. Call it regularly."""
        for visible in self._visible.values():
            if now_s - visible.shown_s >= MAX_SHOWN_S:
                self._report_shown(visible, now_s)

    def change(self, uri: str, edit: TextEdit, now_s: float) -> EditorOutcomeEvent | None:
        """Apply an edit; return the outcome for the visible suggestion, or None.

        Return REJECTED also after a partial acceptance, although no rejection is reported then.
        """
        for accepted in self._accepted:
            if accepted.uri == uri:
                accepted.apply_edit(edit)
        visible = self._visible.get(uri)
        return None if visible is None else self._apply_to_visible(uri, visible, edit, now_s)

    def accept(self, id: str, now_s: float) -> None:
        """Note an acceptance that the editor reports. Usually the change of the text came before.

        The acceptance was then reported already, and this call has no effect.
        """
        for uri, visible in list(self._visible.items()):
            # If an edit has accepted a part, that part was reported, and text that arrived later
            # was not accepted.
            if visible.id == id and visible.is_whole and not visible.num_accepted:
                self._on_accepted(uri, visible, now_s)

    def track_accepted(self, uri: str, suggestion: ShownSuggestion, *, now_s: float) -> None:
        """Track an accepted text, which is in the file now, to report later what is left of it."""
        end = suggestion.at + len(suggestion.text)
        self._accepted.append(
            _AcceptedSuggestion(
                suggestion.id,
                uri,
                suggestion.text,
                suggestion.at,
                end,
                now_s,
                suggestion.request_id,
            )
        )
        del self._accepted[:-_MAX_TRACKED]

    def close(self, uri: str, now_s: float) -> None:
        """Stop tracking a closed file."""
        self._on_hidden(uri, now_s)
        self._accepted = [accepted for accepted in self._accepted if accepted.uri != uri]

    def check_persistence(self, read_text: Callable[[str], str | None], now_s: float) -> None:
        """Report what is left of accepted texts whose next check is due. Call it regularly.

        `read_text` returns the text of a file by its URI, or None if the file is closed.
        """
        for accepted in self._accepted:
            passed_spans = [
                span for span in accepted.spans_s if now_s - accepted.accepted_s >= span
            ]
            if not passed_spans:
                continue
            del accepted.spans_s[: len(passed_spans)]
            text = read_text(accepted.uri)
            if text is not None:
                self._emit(
                    _build_persisted_outcome(accepted, text[accepted.start : accepted.end], now_s)
                )
        self._accepted = [accepted for accepted in self._accepted if accepted.spans_s]

    def _emit(self, outcome: EditorOutcome) -> None:
        """Send an outcome. SHOWN, ACCEPTED and REJECTED are sent once for each suggestion."""
        if outcome.event in (
            EditorOutcomeEvent.SHOWN,
            EditorOutcomeEvent.ACCEPTED,
            EditorOutcomeEvent.REJECTED,
        ):
            id_and_event = (outcome.id, outcome.event)
            if id_and_event in self._reported:
                return
            self._reported[id_and_event] = None
            if len(self._reported) > _MAX_REMEMBERED:
                self._reported.popitem(last=False)
        self._send(outcome)

    def _apply_to_visible(
        self, uri: str, visible: _VisibleSuggestion, edit: TextEdit, now_s: float
    ) -> EditorOutcomeEvent | None:
        """Move, consume or end the suggestion, and report the outcome."""
        cursor = visible.at + visible.num_consumed
        if edit.at + edit.deleted < visible.at:
            visible.at += len(edit.inserted) - edit.deleted  # an edit above it, such as an import
            return None
        remaining_text = visible.text[visible.num_consumed :]
        typed_text = _find_typed_part(edit, cursor, remaining_text)
        if typed_text is None:
            is_seen = _is_seen(visible, now_s)
            self._on_hidden(uri, now_s)
            return EditorOutcomeEvent.REJECTED if is_seen else None
        suggested_part = visible.consume(typed_text)
        if typed_text == remaining_text and visible.is_whole:
            if len(typed_text) > 1:
                self._on_accepted(uri, visible, now_s)
                return EditorOutcomeEvent.ACCEPTED
            self._report_shown(visible, now_s)
            del self._visible[uri]
            return None
        if len(suggested_part) > 1:
            self._report_shown(visible, now_s, is_certain=True)
            visible.num_accepted += len(suggested_part)
            self._emit(
                _build_outcome(
                    visible, EditorOutcomeEvent.PARTIALLY_ACCEPTED, now_s, suggested_part
                )
            )
            return EditorOutcomeEvent.PARTIALLY_ACCEPTED
        return None

    def _on_accepted(self, uri: str, visible: _VisibleSuggestion, now_s: float) -> None:
        del self._visible[uri]
        self._report_shown(visible, now_s, is_certain=True)
        self._emit(_build_outcome(visible, EditorOutcomeEvent.ACCEPTED, now_s))
        accepted = ShownSuggestion(
            visible.id, visible.at, visible.text, request_id=visible.request_id
        )
        self.track_accepted(uri, accepted, now_s=now_s)

    def _on_hidden(self, uri: str, now_s: float) -> None:
        """Note that the suggestion disappears, and report it as shown and rejected.

        If a part of it was accepted, it is not rejected.
        """
        visible = self._visible.pop(uri, None)
        if visible is None:
            return
        self._report_shown(visible, now_s)
        if not visible.num_accepted and _is_seen(visible, now_s):
            self._emit(_build_outcome(visible, EditorOutcomeEvent.REJECTED, now_s))

    def _report_shown(
        self, visible: _VisibleSuggestion, now_s: float, *, is_certain: bool = False
    ) -> None:
        """Report that the user saw the suggestion, if it was visible for long enough.

        `is_certain`: the user has accepted the suggestion or a part of it, so it was seen.
        """
        if is_certain or _is_seen(visible, now_s):
            suggested_text = visible.text[visible.initial_num_lead_chars :]
            outcome = _build_outcome(visible, EditorOutcomeEvent.SHOWN, now_s, suggested_text)
            self._emit(replace(outcome, display_ms=_display_ms(visible)))


def _display_ms(visible: _VisibleSuggestion) -> int | None:
    return None if visible.sent_s is None else _to_ms(visible.displayed_s - visible.sent_s)


def _is_seen(visible: _VisibleSuggestion, now_s: float) -> bool:
    return now_s - visible.shown_s >= MIN_SHOWN_S


def _find_typed_part(edit: TextEdit, cursor: int, remaining_text: str) -> str | None:
    """Return the part of the suggestion that the edit inserts; None if it inserts other text.

    A closing bracket that the editor adds after the cursor does not count.
    """
    if edit.at != cursor or not edit.inserted:
        return None
    if remaining_text.startswith(edit.inserted):
        return edit.inserted
    opening_bracket = edit.inserted[:1]
    is_pair = edit.inserted in ("()", "[]", "{}", '""', "''", "``")
    return opening_bracket if is_pair and remaining_text.startswith(opening_bracket) else None


def _build_outcome(
    visible: _VisibleSuggestion, event: EditorOutcomeEvent, now_s: float, text: str | None = None
) -> EditorOutcome:
    """Create an outcome for a part of the suggestion; without a text, for all of it."""
    return EditorOutcome(
        visible.id,
        event,
        _to_ms(now_s - visible.shown_s),
        chars=None if text is None else len(text),
        lines=None if text is None else _num_lines(text),
        request_id=visible.request_id,
    )


def _build_persisted_outcome(
    accepted: _AcceptedSuggestion, current_text: str, now_s: float
) -> EditorOutcome:
    distance = edit_distance(accepted.text, current_text[:_MAX_COMPARED_CHARS])
    num_kept_chars = max(len(accepted.text) - distance, 0)
    share = min(distance / max(len(accepted.text), 1), 1.0)
    after_ms = _to_ms(now_s - accepted.accepted_s)
    return EditorOutcome(
        accepted.id,
        EditorOutcomeEvent.PERSISTED,
        after_ms,
        chars=num_kept_chars,
        edited_ratio=round(share, 4),
        text=current_text,
        request_id=accepted.request_id,
    )


def _num_lines(text: str) -> int:
    return text.count("\n") + 1


def _to_ms(seconds: float) -> int:
    return round(seconds * 1000)
