"""The timings of the stages of a completion that has ended, from its request trace.

    receive  authenticate  admit  assemble  route  generate  filter  stream  record
    |-------|-------------|------|---------|------|---------|-------|-------|------|
    arrival                                    engine's     first    the     journalled
                                               first token  text     end

After the first token, generate, filter and stream run concurrently. Here, generate and filter end
with their first output, and the rest of the time belongs to stream.
"""

from typing import Final, NamedTuple

from inference.completion.request_trace import RequestTrace

STAGES: Final = (
    *("receive", "authenticate", "admit", "assemble", "route", "generate", "filter"),
    *("stream", "record"),
)


class StageTiming(NamedTuple):
    stage: str
    began_s: float  # monotonic
    ended_s: float
    is_whole: bool  # False: the completion ended before the stage was finished


def compute_stage_timings(trace: RequestTrace, *, recorded_s: float) -> list[StageTiming]:
    """Return the timings in order, without stages that were not reached.

    `recorded_s` is the end of the record stage, in monotonic seconds.
    """
    closed_s = trace.closed_s if trace.closed_s is not None else recorded_s
    began_s = trace.arrival.received_s
    timings: list[StageTiming] = []
    # The last two stages, `stream` and `record`, have no mark. They are added below.
    for stage, mark_s in zip(STAGES, _list_marks(trace), strict=False):
        if mark_s is None:
            timings.append(StageTiming(stage, began_s, closed_s, is_whole=False))
            break
        timings.append(StageTiming(stage, began_s, mark_s, is_whole=True))
        began_s = mark_s
    else:  # all marks were reached
        timings.append(StageTiming("stream", began_s, closed_s, is_whole=True))
    timings.append(StageTiming("record", closed_s, recorded_s, is_whole=True))
    return timings


def _list_marks(trace: RequestTrace) -> tuple[float | None, ...]:
    """Return the times at which the stages up to `filter` ended; None: the stage did not end."""
    return (
        trace.received_s,
        trace.authenticated_s,
        trace.admitted_s,
        trace.assembled_s,
        trace.routed_s,
        trace.engine_first_token_s,
        trace.first_sent_s,
    )
