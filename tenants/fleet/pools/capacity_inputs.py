"""Inputs of the capacity planner that gateways have measured. Pure."""

from tenants.fleet.pools.pool_status import WARM_UP
from tenants.fleet.pools.scraping.installation_status import InstallationStatus
from tenants.fleet.pools.scraping.metric_samples import MetricSamples


def measured_figures(installation: InstallationStatus, *, pool: str | None) -> dict[str, float]:
    """Return fields of `caret.capacity.inputs.Figures` for a pool; None: all pools together.

    Fields without measurements are left out.
    """
    counted, window_s = installation.recent.counted, installation.recent.window_s
    labels = {} if pool is None else {"pool": pool}
    prompts = _sum_counter(counted, "caret_assembled_prompts_total", labels)
    told = _sum_counter(counted, "caret_prompt_tokens_with_cache_info_total", labels)
    found: dict[str, float] = {}
    if prompts > 0:
        found["context_tokens"] = (
            _sum_counter(counted, "caret_prompt_tokens_total", labels) / prompts
        )
        found["output_tokens"] = (
            _sum_counter(counted, "caret_generated_tokens_total", labels) / prompts
        )
        # Without a window the counts are since each gateway's start, so the duration is unknown.
        if window_s:
            found["requests_per_s"] = prompts / window_s
    if told > 0:
        found["hit_rate"] = _sum_counter(counted, "caret_cached_tokens_total", labels) / told
    num_replicas = len(
        {
            replica.name
            for each in installation.pools
            if pool in (None, each.name)
            for replica in each.replicas
            if replica.is_up is not False and not replica.is_drained
        }
    )
    if num_replicas:
        found["num_gpus"] = num_replicas
    return found


def _sum_counter(counted: MetricSamples, name: str, labels: dict[str, str]) -> float:
    """Return a sum without warm-ups, which are not user requests."""
    return counted.sum(name, **labels) - counted.sum(name, mode=WARM_UP, **labels)
