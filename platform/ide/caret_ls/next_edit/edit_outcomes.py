"""Tracks the outcome of the next edit that the editor shows: shown, accepted, rejected. Pure.

An edit that was visible for less than MIN_SHOWN_S counts as not seen: nothing is reported, unless
the user accepted it. The shown outcome has the time for which the edit was visible. It is sent when
the edit disappears, or once the edit has been visible for MAX_SHOWN_S.
"""

from collections.abc import Callable
from dataclasses import dataclass

from caret_ls.outcome_tracker import (
    MAX_SHOWN_S,
    MIN_SHOWN_S,
    EditorOutcome,
    EditorOutcomeEvent,
)


@dataclass(slots=True)
class _OfferedEdit:
    uri: str
    id: str  # of its request on the connection
    request_id: str  # the gateway's ID of the request
    sent_s: float | None  # when the request was sent; None: the edit was there before it was needed
    displayed_s: float | None = None  # since when it is on the screen; None: not yet
    is_shown_reported: bool = False


class EditOutcomes:
    """Tracks one edit, because an editor shows one at a time. Times are seconds of one clock."""

    def __init__(self, send: Callable[[EditorOutcome], None]) -> None:
        self._send = send
        self._offer: _OfferedEdit | None = None

    def offer(
        self, uri: str, id: str, *, request_id: str, now_s: float, sent_s: float | None = None
    ) -> None:
        """Track an edit that the editor gets. The edit before it disappears."""
        self._end(now_s)
        self._offer = _OfferedEdit(uri, id, request_id, sent_s)

    def on_displayed(self, id: str, now_s: float) -> None:
        offer = self._find(id)
        if offer is not None and offer.displayed_s is None:
            offer.displayed_s = now_s

    def on_accepted(self, id: str, now_s: float) -> None:
        offer = self._find(id)
        if offer is None:
            return
        self._offer = None
        self._report_shown(offer, now_s)
        self._report(offer, EditorOutcomeEvent.ACCEPTED, now_s)

    def on_dismissed(self, id: str, now_s: float) -> None:
        if self._find(id) is not None:
            self._end(now_s)

    def on_change(self, uri: str, now_s: float) -> None:
        """Note a change of the file's text. It hides an edit that was not accepted before."""
        if self._offer is not None and self._offer.uri == uri:
            self._end(now_s)

    def report_long_shown(self, now_s: float) -> None:
        """Report an edit that has been visible for a long time. Call it regularly."""
        offer = self._offer
        if offer is not None and _visible_s(offer, now_s) >= MAX_SHOWN_S:
            self._report_shown(offer, now_s)

    def _find(self, id: str) -> _OfferedEdit | None:
        return self._offer if self._offer is not None and self._offer.id == id else None

    def _end(self, now_s: float) -> None:
        """Report that the edit disappears without having been accepted."""
        offer, self._offer = self._offer, None
        if offer is not None and _visible_s(offer, now_s) >= MIN_SHOWN_S:
            self._report_shown(offer, now_s)
            self._report(offer, EditorOutcomeEvent.REJECTED, now_s)

    def _report_shown(self, offer: _OfferedEdit, now_s: float) -> None:
        if not offer.is_shown_reported:
            offer.is_shown_reported = True
            self._report(offer, EditorOutcomeEvent.SHOWN, now_s, display_ms=_display_ms(offer))

    def _report(
        self,
        offer: _OfferedEdit,
        event: EditorOutcomeEvent,
        now_s: float,
        *,
        display_ms: int | None = None,
    ) -> None:
        after_ms = round(_visible_s(offer, now_s) * 1000)
        self._send(
            EditorOutcome(
                offer.id, event, after_ms, request_id=offer.request_id, display_ms=display_ms
            )
        )


def _display_ms(offer: _OfferedEdit) -> int | None:
    if offer.sent_s is None or offer.displayed_s is None:
        return None
    return round((offer.displayed_s - offer.sent_s) * 1000)


def _visible_s(offer: _OfferedEdit, now_s: float) -> float:
    """Return for how long the edit has been visible; 0: the editor has not displayed it."""
    return 0.0 if offer.displayed_s is None else now_s - offer.displayed_s
