"""The numbers of a completion as its client is told them, and on request what its prompt was."""

import msgspec

from inference.completion.request_trace import RequestTrace
from inference.completion.segment import Segment
from inference.gateway.protocol.frames import CompletionMeta, PromptExplanation, SegmentFrame


def build_meta(account: RequestTrace, *, is_explained: bool) -> CompletionMeta:
    return CompletionMeta(
        request_id=account.arrival.request_id,
        first_token_ms=account.first_token_ms,
        total_ms=account.total_ms,
        queue_ms=account.time_to_engine_ms,
        assemble_ms=account.elapsed_ms(account.assembled_s),
        engine_ms=account.engine_ms,
        prompt_tokens=account.prompt_tokens,
        cached_tokens=account.cached_tokens,
        generated_tokens=account.generated_tokens,
        tier=account.request.tier if account.request else "",
        pool=account.pool,
        replica=account.replica,
        filter_reason=account.filter_reason,
        explanation=_explanation(account) if is_explained else msgspec.UNSET,
    )


def _explanation(account: RequestTrace) -> PromptExplanation:
    sent = 0 if account.request is None else len(account.request.files)
    allowed = sent if account.admitted is None else len(account.admitted.request.files)
    return PromptExplanation(
        segments=_segments(account.segments, account.cached_tokens),
        files_sent=sent,
        files_excluded=sent - allowed,
        files_in_prompt=account.num_files,
        snippets_in_prompt=account.num_snippets,
    )


def _segments(segments: tuple[Segment, ...], cached_tokens: int | None) -> list[SegmentFrame]:
    """An engine caches a prompt's beginning: each segment has what is left for it."""
    frames: list[SegmentFrame] = []
    left = cached_tokens
    for segment in segments:
        cached = None if left is None else min(left, segment.num_tokens)
        frames.append(SegmentFrame(segment.kind, segment.num_tokens, cached))
        left = None if left is None or cached is None else left - cached
    return frames
