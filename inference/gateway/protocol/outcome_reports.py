"""Outcome reports of clients, and their comparison with the suggestions. Pure.

Rules:
1. An outcome counts at most the characters and lines that were suggested. Text that an editor adds
   (brackets, line endings) does not count. Without a number, the whole suggestion counts.
2. Shown, accepted and rejected can be reported once for a suggestion, partial acceptance up to
   MAX_PARTS times, and persistence once for each of SPANS_S.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from caret.contracts.usage import MAX_PARTS, SPANS_S, OutcomeEvent
from caret.foundation.ids import RequestId
from inference.gateway.protocol.frames import InvalidFrame

MAX_NUMBER: Final = 2**31 - 1  # the largest integer of a database column
# Client timers may fire a little early. A report counts for the longest span that has passed.
_MIN_SHARE_OF_SPAN: Final = 0.9


@dataclass(slots=True)
class SuggestionRecord:
    """The size of a suggestion and its reported outcomes. Numbers only, never the text."""

    request_id: RequestId
    num_chars: int = 0
    num_lines: int = 0
    # Number of reports by event and span in seconds (None: the event is not `persisted`).
    reported_events: Counter[tuple[OutcomeEvent, int | None]] = field(default_factory=Counter)

    def append_text(self, text: str) -> None:
        """Add the size of `text`. The text is not kept."""
        is_first_text = self.num_chars == 0 and text != ""  # it also begins the first line
        self.num_lines += text.count("\n") + is_first_text
        self.num_chars += len(text)


@dataclass(frozen=True, slots=True)
class OutcomeReport:
    """A report as the client sent it, not validated yet."""

    event: OutcomeEvent
    chars: int | None = None  # None: the whole suggestion
    lines: int | None = None  # None: the whole suggestion
    after_ms: int = 0  # since the suggestion was shown; for persisted: since it was accepted
    edited_ratio: float | None = None  # only for persisted: edit distance / accepted text, 0 to 1
    display_ms: int | None = None  # only for shown; None: the user did not wait for the suggestion


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """The numbers of a valid report, limited to the size of the suggestion."""

    chars: int
    lines: int
    span_s: int | None  # one of SPANS_S; None: the event is not `persisted`
    edited_ratio: float | None  # None: the event is not `persisted`


def count_outcome(suggestion: SuggestionRecord, report: OutcomeReport) -> OutcomeCounts:
    """Validate the report, count it in the suggestion, and return its numbers.

    The codes of InvalidFrame are `invalid_field` and `duplicate_outcome`. Raises InvalidFrame.
    """
    span_s = validate_report(report)
    key = (report.event, span_s)
    max_reports = MAX_PARTS if report.event is OutcomeEvent.PARTIALLY_ACCEPTED else 1
    if suggestion.reported_events[key] >= max_reports:
        raise InvalidFrame("duplicate_outcome", "This outcome was already reported.")
    suggestion.reported_events[key] += 1
    return OutcomeCounts(
        chars=_limit_count(report.chars, suggestion.num_chars),
        lines=_limit_count(report.lines, suggestion.num_lines),
        span_s=span_s,
        edited_ratio=report.edited_ratio,
    )


def validate_report(report: OutcomeReport) -> int | None:
    """Validate the report. Return its span; None: the event is not `persisted`.

    The span is the longest one of SPANS_S that has passed since acceptance, in seconds. The code of
    InvalidFrame is `invalid_field`. Raises InvalidFrame.
    """
    for name, value in (
        ("chars", report.chars),
        ("lines", report.lines),
        ("after_ms", report.after_ms),
        ("display_ms", report.display_ms),
    ):
        if value is not None and not 0 <= value <= MAX_NUMBER:
            raise InvalidFrame(
                "invalid_field", f"{name} must be a whole number from 0 to {MAX_NUMBER}."
            )
    if (report.event is OutcomeEvent.PERSISTED) != (report.edited_ratio is not None):
        raise InvalidFrame(
            "invalid_field",
            "edited_ratio is required for persisted, and not allowed for other events.",
        )
    if report.display_ms is not None and report.event is not OutcomeEvent.SHOWN:
        raise InvalidFrame("invalid_field", "display_ms is only allowed for shown.")
    if report.edited_ratio is not None and not 0 <= report.edited_ratio <= 1:
        raise InvalidFrame("invalid_field", "edited_ratio must be from 0 to 1.")
    return _find_span_s(report)


def _find_span_s(report: OutcomeReport) -> int | None:
    if report.event is not OutcomeEvent.PERSISTED:
        return None
    passed_spans = [
        span for span in SPANS_S if report.after_ms >= span * 1_000 * _MIN_SHARE_OF_SPAN
    ]
    if not passed_spans:
        message = f"persisted must be reported at least {SPANS_S[0]} s after acceptance (after_ms)."
        raise InvalidFrame("invalid_field", message)
    return passed_spans[-1]


def _limit_count(reported: int | None, suggested: int) -> int:
    return suggested if reported is None else min(reported, suggested)
