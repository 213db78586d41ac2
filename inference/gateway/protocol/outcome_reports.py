"""What a client tells of a suggestion, held against what was suggested. Pure.

Rules:
1. An outcome counts no more characters and lines than were suggested: what an editor adds to them
   (brackets, line ends) is not ours. Where the client names none, all of it is meant.
2. Shown, accepted and rejected are told once, parts up to 32 times, persistence once for each of
   the moments in SPANS_S.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from caret.contracts.usage import MAX_PARTS, SPANS_S, OutcomeEvent
from caret.foundation.ids import RequestId
from inference.gateway.protocol.frames import InvalidFrame

MAX_NUMBER: Final = 2**31 - 1
# A client's timer may be a little early; what it tells later belongs to the last moment before it.
_MIN_SHARE_OF_SPAN: Final = 0.9


@dataclass(slots=True)
class SuggestionRecord:
    """Numbers only: never what was suggested."""

    request_id: RequestId
    num_chars: int = 0
    num_lines: int = 0
    reported_events: Counter[tuple[OutcomeEvent, int | None]] = field(default_factory=Counter)

    def append_text(self, text: str) -> None:
        """It goes on with `text`, which is not kept."""
        self.num_lines += text.count("\n") + (self.num_chars == 0 and text != "")
        self.num_chars += len(text)


@dataclass(frozen=True, slots=True)
class OutcomeReport:
    """As the client says it."""

    event: OutcomeEvent
    chars: int | None = None  # None: all that was suggested
    lines: int | None = None
    after_ms: int = 0
    edited_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    chars: int
    lines: int
    span_s: int | None
    edited_ratio: float | None


def count_outcome(suggestion: SuggestionRecord, told: OutcomeReport) -> OutcomeCounts:
    """Marks it as told. Raises InvalidFrame: `invalid_field`, `duplicate_outcome`."""
    span_s = validate_report(told)
    key = (told.event, span_s)
    most = MAX_PARTS if told.event is OutcomeEvent.PARTIALLY_ACCEPTED else 1
    if suggestion.reported_events[key] >= most:
        raise InvalidFrame("duplicate_outcome", "This was reported before.")
    suggestion.reported_events[key] += 1
    return OutcomeCounts(
        chars=_at_most(suggestion.num_chars, told.chars),
        lines=_at_most(suggestion.num_lines, told.lines),
        span_s=span_s,
        edited_ratio=told.edited_ratio,
    )


def validate_report(told: OutcomeReport) -> int | None:
    """Of persisted, which of SPANS_S had gone by. Raises InvalidFrame: `invalid_field`."""
    for name, value in (("chars", told.chars), ("lines", told.lines), ("after_ms", told.after_ms)):
        if value is not None and not 0 <= value <= MAX_NUMBER:
            raise InvalidFrame(
                "invalid_field", f"{name} must be a whole number from 0 to {MAX_NUMBER}."
            )
    if (told.event is OutcomeEvent.PERSISTED) != (told.edited_ratio is not None):
        raise InvalidFrame(
            "invalid_field", "edited_ratio belongs to persisted, and to nothing else."
        )
    if told.edited_ratio is not None and not 0 <= told.edited_ratio <= 1:
        raise InvalidFrame("invalid_field", "edited_ratio must be a share from 0 to 1.")
    return _span_s(told)


def _span_s(told: OutcomeReport) -> int | None:
    if told.event is not OutcomeEvent.PERSISTED:
        return None
    passed = [span for span in SPANS_S if told.after_ms >= span * 1_000 * _MIN_SHARE_OF_SPAN]
    if not passed:
        message = f"after_ms of persisted is at least {SPANS_S[0]} s, since it was accepted."
        raise InvalidFrame("invalid_field", message)
    return passed[-1]


def _at_most(suggested: int, told: int | None) -> int:
    return suggested if told is None else min(told, suggested)
