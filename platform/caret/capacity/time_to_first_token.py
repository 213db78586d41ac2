"""First-token latency over hit rates: a few cold prompts raise the p99 steeply (the cliff).

A warm request prefills `warm_tokens`, and a cold request prefills its whole context. The share of
cold requests follows from the hit rate. A GPU prefills one prompt at a time. At the same time, the
GPU decodes other requests, which makes each prefill slower.
"""

from dataclasses import dataclass

from caret.capacity.inputs import CapacityInputs, Queue
from caret.capacity.queueing import QueueUnstable, ServiceTime, compute_wait, sojourn_quantile_s


@dataclass(frozen=True, slots=True)
class FirstTokenLatency:
    mean_ms: float
    p50_ms: float
    p95_ms: float
    p99_ms: float


def cold_ms(figures: CapacityInputs) -> float:
    """Return the prefill time of a cold request on an otherwise idle GPU."""
    return figures.context_tokens / figures.prefill_tokens_per_s * 1000


def warm_ms(figures: CapacityInputs) -> float:
    """Return the prefill time of a warm request on an otherwise idle GPU."""
    return figures.warm_tokens / figures.prefill_tokens_per_s * 1000


def estimate_first_token(
    figures: CapacityInputs, *, hit_rate: float, requests_per_s: float, num_gpus: int
) -> FirstTokenLatency:
    """Estimate the latency of first tokens.

    Raises QueueUnstable if the load overloads the GPUs.
    """
    # The share of each GPU's time that decoding takes.
    decode_share = requests_per_s * figures.output_tokens / figures.decode_tokens_per_s / num_gpus
    if decode_share >= 1:
        raise QueueUnstable
    tokens_per_s = figures.prefill_tokens_per_s * (1 - decode_share)
    service = _compute_prefill(figures, hit_rate, tokens_per_s=tokens_per_s)
    if figures.queue is Queue.PINNED:
        wait = compute_wait(requests_per_s / num_gpus, service, num_servers=1)
    else:
        wait = compute_wait(requests_per_s, service, num_servers=num_gpus)
    p50_ms, p95_ms, p99_ms = (
        figures.overhead_ms + sojourn_quantile_s(wait, service, quantile) * 1000
        for quantile in (0.5, 0.95, 0.99)
    )
    mean_ms = figures.overhead_ms + (wait.mean_s + service.mean_s) * 1000
    return FirstTokenLatency(mean_ms, p50_ms, p95_ms, p99_ms)


def _compute_prefill(
    figures: CapacityInputs, hit_rate: float, *, tokens_per_s: float
) -> ServiceTime:
    """Return the prefill times of warm and cold requests.

    If the hit rate is so high that all requests are warm, they may prefill less than `warm_tokens`.
    """
    cold, missing_tokens = figures.context_tokens, (1 - hit_rate) * figures.context_tokens
    warm = min(figures.warm_tokens, missing_tokens)
    # A request prefills `missing_tokens` on average: share_cold * cold + (1 - share_cold) * warm.
    share_cold = (missing_tokens - warm) / (cold - warm) if cold > warm else 0.0
    return ServiceTime(
        kinds=((1 - share_cold, warm / tokens_per_s), (share_cold, cold / tokens_per_s))
    )
