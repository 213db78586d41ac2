"""Measurements of the gateways as inputs of the capacity planner. Pure."""

from tenants.fleet.pools.pool_status import WARM_UP
from tenants.fleet.pools.scraping.installation_status import InstallationStatus
from tenants.fleet.pools.scraping.metric_samples import MetricSamples


def compute_measured_inputs(
    installation: InstallationStatus, *, pool: str | None
) -> dict[str, float]:
    """Return fields of `caret.capacity.inputs.CapacityInputs` for a pool; None: all pools together.

    Fields without measurements are left out.
    """
    counters, window_s = installation.recent.counters, installation.recent.window_s
    labels = {} if pool is None else {"pool": pool}
    num_prompts = _sum_counter(counters, "caret_assembled_prompts_total", labels)
    num_prompt_tokens = _sum_counter(counters, "caret_prompt_tokens_with_cache_info_total", labels)
    inputs: dict[str, float] = {}
    if num_prompts > 0:
        inputs["context_tokens"] = (
            _sum_counter(counters, "caret_prompt_tokens_total", labels) / num_prompts
        )
        inputs["output_tokens"] = (
            _sum_counter(counters, "caret_generated_tokens_total", labels) / num_prompts
        )
        # Without a window the counts begin at each gateway's start, so their duration is unknown.
        if window_s:
            inputs["requests_per_s"] = num_prompts / window_s
    if num_prompt_tokens > 0:
        inputs["hit_rate"] = (
            _sum_counter(counters, "caret_cached_tokens_total", labels) / num_prompt_tokens
        )
    num_replicas = len(
        {
            replica.name
            for pool_status in installation.pools
            if pool in (None, pool_status.name)
            for replica in pool_status.replicas
            if replica.is_up is not False and not replica.is_drained
        }
    )
    if num_replicas:
        inputs["num_gpus"] = num_replicas  # the planner counts a replica as one GPU
    return inputs


def _sum_counter(counters: MetricSamples, name: str, labels: dict[str, str]) -> float:
    """Return the sum of a counter without warm-ups, which are not requests of users."""
    return counters.sum(name, **labels) - counters.sum(name, mode=WARM_UP, **labels)
