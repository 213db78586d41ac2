"""Generated outcomes of suggestions, and typing reports. Pure."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from math import exp
from random import Random
from typing import Final
from uuid import UUID

from caret.contracts.policy import Mode
from caret.contracts.usage import SPANS_S, FinishReason, OutcomeEvent
from tenants.demo.traffic.request_generator import CHARS_PER_LINE, VARIANTS, DemoDeveloper
from tenants.demo.traffic.traffic_pattern import TrafficLevel
from tenants.models import Outcome, TypingReport, UsageRecord

_SHOWN_SHARE: Final = 0.86  # of the suggestions; the others arrive too late
_PARTLY_ACCEPTED_SHARE: Final = 0.12  # of the accepted suggestions
# The accepted share of the characters of a partly accepted suggestion.
_PARTLY_ACCEPTED_TEXT_SHARE: Final = 0.4
# The share of the accepted suggestions of which editors check, at several later times, how much of
# the text is left.
_CHECKED_SHARE: Final = 0.3
_MEDIAN_VISIBLE_MS: Final = 900


def generate_outcomes(
    row: UsageRecord, developer: DemoDeveloper, level: TrafficLevel, random: Random
) -> Iterator[Outcome]:
    """Yield the outcomes of a request, oldest first; none if no suggestion was shown."""
    if not _is_suggestion(row) or random.random() > _SHOWN_SHARE:
        return
    num_chars = row.num_chars or 0
    visible_ms = int(_MEDIAN_VISIBLE_MS * exp(random.gauss(0, 0.8)))
    shown_at = row.occurred_at + timedelta(milliseconds=row.total_ms)
    yield _make_outcome(row, OutcomeEvent.SHOWN, shown_at, random, chars=num_chars, after_ms=0)
    ended_at = shown_at + timedelta(milliseconds=visible_ms)
    if random.random() > _compute_acceptance_chance(row, developer, level):
        event, chars = OutcomeEvent.REJECTED, num_chars
    elif random.random() < _PARTLY_ACCEPTED_SHARE:
        event = OutcomeEvent.PARTIALLY_ACCEPTED
        chars = max(1, int(num_chars * _PARTLY_ACCEPTED_TEXT_SHARE))
    else:
        event, chars = OutcomeEvent.ACCEPTED, num_chars
    yield _make_outcome(row, event, ended_at, random, chars=chars, after_ms=visible_ms)
    if event is not OutcomeEvent.REJECTED and random.random() < _CHECKED_SHARE:
        yield from _make_persistence_checks(row, ended_at, chars, random)


def generate_typing_reports(
    developer: DemoDeveloper, rows: list[UsageRecord], level: TrafficLevel, random: Random
) -> Iterator[TypingReport]:
    """Yield a typing report for each hour and language with requests. `rows` are of one day.

    The number of typed characters falls during the period, because acceptance grows.
    """
    last_requests = {(row.occurred_at.hour, row.language): row for row in rows}
    for row in last_requests.values():
        yield TypingReport(
            tenant_id=row.tenant_id,
            occurred_at=row.occurred_at,
            report_id=UUID(int=random.getrandbits(128), version=4),
            user_id=developer.user_id,
            language=row.language,
            editor=developer.editor,
            chars=int(random.uniform(250, 900) * (1.15 - 0.3 * level.elapsed_share)),
        )


def _is_suggestion(row: UsageRecord) -> bool:
    has_text = row.finish_reason in (FinishReason.STOP, FinishReason.LENGTH) and bool(row.num_chars)
    return has_text and row.mode != Mode.CHAT and row.user_id is not None


def _compute_acceptance_chance(
    row: UsageRecord, developer: DemoDeveloper, level: TrafficLevel
) -> float:
    """Return the chance of acceptance.

    It is higher for fast and for short suggestions, and for the first variant of the experiment. It
    grows during the period.
    """
    chance = developer.acceptance_share * (0.85 + 0.3 * level.elapsed_share)
    if row.variant == VARIANTS[0]:
        chance *= 1.09
    if (row.first_token_ms or 0.0) > 250:
        chance *= 0.6
    return chance * (0.75 if (row.num_lines or 0) > 3 else 1.0)


def _make_persistence_checks(
    row: UsageRecord, accepted_at: datetime, chars: int, random: Random
) -> Iterator[Outcome]:
    """Yield later checks of the accepted text. Its edited share never falls between two checks."""
    edited_share = random.betavariate(0.35, 2.6)
    for span_s in SPANS_S:
        edited_share = min(1.0, edited_share + random.betavariate(0.3, 9.0))
        outcome = _make_outcome(
            row,
            OutcomeEvent.PERSISTED,
            accepted_at + timedelta(seconds=span_s),
            random,
            chars=max(0, int(chars * (1 - edited_share))),
            after_ms=span_s * 1_000,
        )
        outcome.span_s, outcome.edited_ratio = span_s, round(edited_share, 3)
        yield outcome


def _make_outcome(
    row: UsageRecord,
    event: OutcomeEvent,
    at: datetime,
    random: Random,
    *,
    chars: int,
    after_ms: int,
) -> Outcome:
    return Outcome(
        tenant_id=row.tenant_id,
        occurred_at=at,
        outcome_id=UUID(int=random.getrandbits(128), version=4),
        request_id=row.request_id,
        user_id=row.user_id,
        event=event.value,
        chars=chars,
        after_ms=after_ms,
        lines=(1 + chars // CHARS_PER_LINE) if (row.num_lines or 1) > 1 else 1,
    )
