"""Why a completion took as long as it did: its stages against their budgets, and rules in words.

Pure. All it knows is one usage record: counts and times, no code. Stages are told one after the
other, as in the gateway: `generate` ends with the engine's first token, `filter` with the first
text that could be shown, `stream` has the rest.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from caret.contracts.policy import Mode
from caret.contracts.targets import FIRST_TOKEN_MS, STAGE_MS
from caret.contracts.usage import CompletionRecord, Finish

# Fewer tokens than that are prefilled in a few milliseconds, whatever their share.
_MANY_UNCACHED_TOKENS: Final = 256
_MANY_AT_REPLICA: Final = 4
# Slower than the slowest reader reads; an engine under load stays below it.
_SLOW_TOKEN_MS: Final = 60.0
_MIN_STREAMED_TOKENS: Final = 4


@dataclass(frozen=True, slots=True)
class Stage:
    name: str
    began_ms: float  # since the request was received
    took_ms: float
    budget_ms: float | None  # of an inline request; None: it has none
    ended_here: bool = False  # the completion went no further

    @property
    def is_over(self) -> bool:
        return self.budget_ms is not None and self.took_ms > self.budget_ms


@dataclass(frozen=True, slots=True)
class Explanation:
    stages: tuple[Stage, ...]  # those that were reached, in their order
    target_ms: float  # for the first token of this mode
    is_slow: bool  # its first token came later, or had not come by then
    verdicts: tuple[str, ...]  # sentences, what weighs most first


def explain(record: CompletionRecord) -> Explanation:
    stages = tuple(_stages(record))
    target_ms = FIRST_TOKEN_MS[record.mode]
    waited_ms = record.total_ms if record.first_token_ms is None else record.first_token_ms
    is_slow = waited_ms > target_ms
    by_name = {stage.name: stage for stage in stages}
    said = [
        sentence
        for name, rule in _RULES
        if name in by_name and (sentence := rule(record, by_name[name]))
    ]
    return Explanation(
        stages=stages,
        target_ms=target_ms,
        is_slow=is_slow,
        verdicts=tuple([*said, *_ending(record, stages[-1])] or [_nothing(is_slow)]),
    )


def _stages(record: CompletionRecord) -> Iterator[Stage]:
    began_ms = 0.0
    for name, ended_ms in _marks(record):
        is_last = ended_ms is None
        until_ms = record.total_ms if ended_ms is None else ended_ms
        # Clocks of two readings may differ by their rounding.
        took_ms = max(0.0, until_ms - began_ms)
        yield Stage(name, began_ms, took_ms, _budget_ms(record.mode, name), ended_here=is_last)
        if is_last:
            return
        began_ms = until_ms
    yield Stage("stream", began_ms, max(0.0, record.total_ms - began_ms), None)


def _marks(record: CompletionRecord) -> Iterator[tuple[str, float | None]]:
    """When the stages up to `filter` were over, in milliseconds; None: it was not."""
    yield "authenticate", record.authenticated_ms  # `receive` included: it takes microseconds
    yield "admit", record.admitted_ms
    yield "assemble", record.assembled_ms
    yield "route", record.routed_ms
    asked, engine = record.routed_ms, record.engine_ms
    yield "generate", None if asked is None or engine is None else asked + engine
    yield "filter", record.first_token_ms


def _budget_ms(mode: Mode, stage: str) -> float | None:
    """The engine's part grows with the mode's target; the gateway's own does not."""
    if stage == "authenticate":
        return STAGE_MS["receive"] + STAGE_MS["authenticate"]
    if stage == "generate":
        return STAGE_MS[stage] * FIRST_TOKEN_MS[mode] / FIRST_TOKEN_MS[Mode.INLINE]
    return STAGE_MS.get(stage)


def _authenticate(_record: CompletionRecord, stage: Stage) -> str | None:
    if not stage.is_over:
        return None
    return (
        f"gateway busy: {stage.took_ms:.1f} ms passed before the request was looked at, which is"
        " arithmetic only; the gateway's loop was held up."
    )


def _admit(_record: CompletionRecord, stage: Stage) -> str | None:
    if not stage.is_over:
        return None
    return f"admission slow: {stage.took_ms:.1f} ms; Redis was asked for limits, and took long."


def _assemble(record: CompletionRecord, stage: Stage) -> str | None:
    if not stage.is_over:
        return None
    return (
        f"assembly slow: {stage.took_ms:.1f} ms for {record.prompt_tokens:,} tokens with"
        f" {_count(record.num_files, 'other file')} and"
        f" {_count(record.num_snippets, 'retrieved snippet')}."
    )


def _route(_record: CompletionRecord, stage: Stage) -> str | None:
    return f"routing slow: {stage.took_ms:.1f} ms." if stage.is_over else None


def _generate(record: CompletionRecord, stage: Stage) -> str | None:
    if not stage.is_over:
        return None
    reasons = [reason for reason in (_cold(record), _queued(record)) if reason]
    if reasons:
        return " ".join(reasons)
    if record.cached_tokens is None:
        return (
            f"engine slow: {stage.took_ms:,.0f} ms; it was stopped before it told how much of the"
            " prompt was cached."
        )
    return (
        f"engine slow: {stage.took_ms:,.0f} ms, though all but"
        f" {record.prompt_tokens - record.cached_tokens:,} tokens were cached and"
        f" {_count(record.num_at_replica or 0, 'other request')} of this gateway was there."
    )


def _cold(record: CompletionRecord) -> str | None:
    if record.cached_tokens is None:
        return None
    uncached = record.prompt_tokens - record.cached_tokens
    if uncached < _MANY_UNCACHED_TOKENS:
        return None
    return f"cold: {uncached:,} of {record.prompt_tokens:,} prompt tokens were prefilled."


def _queued(record: CompletionRecord) -> str | None:
    if record.num_at_replica is None or record.num_at_replica < _MANY_AT_REPLICA:
        return None
    return f"queued: {record.num_at_replica} requests were at the replica."


def _filter(_record: CompletionRecord, stage: Stage) -> str | None:
    if not stage.is_over or stage.ended_here:
        return None
    return (
        f"held back: the filter took {stage.took_ms:,.0f} ms of generation to decide on the first"
        " text, such as white space or a line that was not whole."
    )


def _stream(record: CompletionRecord, stage: Stage) -> str | None:
    if record.generated_tokens < _MIN_STREAMED_TOKENS:
        return None
    token_ms = stage.took_ms / (record.generated_tokens - 1)
    if token_ms <= _SLOW_TOKEN_MS:
        return None
    return (
        f"slow client, or slow decoding: {record.generated_tokens:,} tokens at {token_ms:,.0f} ms"
        " each; compare with others at this replica."
    )


Rule = Callable[[CompletionRecord, Stage], str | None]
# The engine first: it has most of the budget.
_RULES: Final[tuple[tuple[str, Rule], ...]] = (
    ("generate", _generate),
    ("assemble", _assemble),
    ("admit", _admit),
    ("route", _route),
    ("authenticate", _authenticate),
    ("filter", _filter),
    ("stream", _stream),
)


def _ending(record: CompletionRecord, last: Stage) -> list[str]:
    at = f"after {record.total_ms:,.1f} ms, in the stage {last.name}"
    match record.finish:
        case Finish.CANCELLED:
            return [f"cancelled: the client took it back or left {at}."]
        case Finish.SUPERSEDED:
            return [f"superseded: a newer request of the same file came {at}."]
        case Finish.SHED:
            return ["shed: the pool was asked for more than it could answer in time."]
        case Finish.BUDGET:
            return ["budget: a hard budget of the tenant, a team or the user is spent."]
        case Finish.FILTERED:
            return [f"withheld by the filter: {record.cut_reason or 'nothing to show'}."]
        case Finish.ERROR:
            return [f"error: {record.error_code} {at}."]
        case Finish.LENGTH if record.cut_reason == "engine_lost":
            return ["cut off: the engine was lost on the way, and no other could go on."]
    return [f"cut by the filter: {record.cut_reason}."] if record.cut_reason else []


def _nothing(is_slow: bool) -> str:
    if is_slow:
        return "Every stage kept its budget; together they are over the target."
    return "Nothing stands out: every stage kept its budget."


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
