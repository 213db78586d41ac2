"""Why a completion took as long as it did: its stages against their budgets, and rules in words.

Pure. All it knows is one usage record: counts and times, no code. Stages are told one after the
other, as in the gateway: `generate` ends with the engine's first token, `filter` with the first
text that could be shown, `stream` has the rest.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from django.utils.translation import gettext_noop

from caret.contracts.latency_targets import FIRST_TOKEN_MS, STAGE_MS
from caret.contracts.policy import Mode
from caret.contracts.usage import CompletionRecord, Finish
from tenants.usage.requests.finding import Amount, Verdict

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
    verdicts: tuple[Verdict, ...]  # what weighs most first


def explain(record: CompletionRecord) -> Explanation:
    stages = tuple(_stages(record))
    target_ms = FIRST_TOKEN_MS[record.mode]
    waited_ms = record.total_ms if record.first_token_ms is None else record.first_token_ms
    is_slow = waited_ms > target_ms
    by_name = {stage.name: stage for stage in stages}
    said = [
        verdict
        for name, rule in _RULES
        if name in by_name
        for verdict in rule(record, by_name[name])
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


def _authenticate(_record: CompletionRecord, stage: Stage) -> Iterator[Verdict]:
    if stage.is_over:
        yield Verdict(
            gettext_noop(
                "gateway busy: {took} ms passed before the request was looked at, which is"
                " arithmetic only; the gateway's loop was held up."
            ),
            took=Amount(stage.took_ms, 1),
        )


def _admit(_record: CompletionRecord, stage: Stage) -> Iterator[Verdict]:
    if stage.is_over:
        yield Verdict(
            gettext_noop("admission slow: {took} ms; Redis was asked for limits, and took long."),
            took=Amount(stage.took_ms, 1),
        )


def _assemble(record: CompletionRecord, stage: Stage) -> Iterator[Verdict]:
    if stage.is_over:
        yield Verdict(
            gettext_noop(
                "assembly slow: {took} ms for {tokens} tokens (other files: {files}, retrieved"
                " snippets: {snippets})."
            ),
            took=Amount(stage.took_ms, 1),
            tokens=Amount(record.prompt_tokens),
            files=Amount(record.num_files),
            snippets=Amount(record.num_snippets),
        )


def _route(_record: CompletionRecord, stage: Stage) -> Iterator[Verdict]:
    if stage.is_over:
        yield Verdict(gettext_noop("routing slow: {took} ms."), took=Amount(stage.took_ms, 1))


def _generate(record: CompletionRecord, stage: Stage) -> Iterator[Verdict]:
    if not stage.is_over:
        return
    reasons = [*_cold(record), *_queued(record)]
    yield from reasons or [_slow_engine(record, stage)]


def _slow_engine(record: CompletionRecord, stage: Stage) -> Verdict:
    if record.cached_tokens is None:
        return Verdict(
            gettext_noop(
                "engine slow: {took} ms; it was stopped before it told how much of the prompt was"
                " cached."
            ),
            took=Amount(stage.took_ms),
        )
    return Verdict(
        gettext_noop(
            "engine slow: {took} ms, though all but {uncached} tokens were cached; other requests"
            " of this gateway that were there: {others}."
        ),
        took=Amount(stage.took_ms),
        uncached=Amount(record.prompt_tokens - record.cached_tokens),
        others=Amount(record.num_at_replica or 0),
    )


def _cold(record: CompletionRecord) -> Iterator[Verdict]:
    if record.cached_tokens is None:
        return
    uncached = record.prompt_tokens - record.cached_tokens
    if uncached >= _MANY_UNCACHED_TOKENS:
        yield Verdict(
            gettext_noop("cold: {uncached} of {tokens} prompt tokens were prefilled."),
            uncached=Amount(uncached),
            tokens=Amount(record.prompt_tokens),
        )


def _queued(record: CompletionRecord) -> Iterator[Verdict]:
    if record.num_at_replica is not None and record.num_at_replica >= _MANY_AT_REPLICA:
        yield Verdict(
            gettext_noop("queued: {requests} requests were at the replica."),
            requests=Amount(record.num_at_replica),
        )


def _filter(_record: CompletionRecord, stage: Stage) -> Iterator[Verdict]:
    if stage.is_over and not stage.ended_here:
        yield Verdict(
            gettext_noop(
                "held back: the filter took {took} ms of generation to decide on the first text,"
                " such as white space or a line that was not whole."
            ),
            took=Amount(stage.took_ms),
        )


def _stream(record: CompletionRecord, stage: Stage) -> Iterator[Verdict]:
    if record.generated_tokens < _MIN_STREAMED_TOKENS:
        return
    token_ms = stage.took_ms / (record.generated_tokens - 1)
    if token_ms > _SLOW_TOKEN_MS:
        yield Verdict(
            gettext_noop(
                "slow client, or slow decoding: {tokens} tokens at {each} ms each; compare with"
                " others at this replica."
            ),
            tokens=Amount(record.generated_tokens),
            each=Amount(token_ms),
        )


Rule = Callable[[CompletionRecord, Stage], Iterator[Verdict]]
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


_ENDED_EARLY: Final = MappingProxyType(
    {
        Finish.CANCELLED: gettext_noop(
            "cancelled: the client took it back or left after {after} ms, in the stage {stage}."
        ),
        Finish.SUPERSEDED: gettext_noop(
            "superseded: a newer request of the same file came after {after} ms, in the stage"
            " {stage}."
        ),
        Finish.ERROR: gettext_noop("error: {code} after {after} ms, in the stage {stage}."),
    }
)
_REFUSED: Final = MappingProxyType(
    {
        Finish.SHED: gettext_noop(
            "shed: the pool was asked for more than it could answer in time."
        ),
        Finish.BUDGET: gettext_noop(
            "budget: a hard budget of the tenant, a team or the user is spent."
        ),
    }
)


def _ending(record: CompletionRecord, last: Stage) -> list[Verdict]:
    if wording := _ENDED_EARLY.get(record.finish):
        after = Amount(record.total_ms, 1)
        code = record.error_code or ""
        return [Verdict(wording, after=after, stage=last.name, code=code)]
    if wording := _REFUSED.get(record.finish):
        return [Verdict(wording)]
    return list(_cut(record.finish, record.cut_reason))


def _cut(finish: Finish, reason: str | None) -> Iterator[Verdict]:
    if finish is Finish.LENGTH and reason == "engine_lost":
        yield Verdict(
            gettext_noop("cut off: the engine was lost on the way, and no other could go on.")
        )
    elif finish is Finish.FILTERED and not reason:
        yield Verdict(gettext_noop("withheld by the filter: nothing to show."))
    elif finish is Finish.FILTERED and reason:
        yield Verdict(gettext_noop("withheld by the filter: {reason}."), reason=reason)
    elif reason:
        yield Verdict(gettext_noop("cut by the filter: {reason}."), reason=reason)


def _nothing(is_slow: bool) -> Verdict:
    if is_slow:
        return Verdict(
            gettext_noop("Every stage kept its budget; together they are over the target.")
        )
    return Verdict(gettext_noop("Nothing stands out: every stage kept its budget."))
