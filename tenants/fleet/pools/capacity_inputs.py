"""Measurements of the gateways as inputs of the capacity planner. Pure."""

from tenants.fleet.pools.pool_status import compute_hit_rate, sum_without_warm_ups
from tenants.fleet.pools.scraping.installation_status import InstallationStatus


def compute_measured_inputs(
    installation: InstallationStatus, *, pool: str | None
) -> dict[str, float]:
    """Return fields of `caret.capacity.inputs.CapacityInputs` for a pool; None: all pools together.

    Fields without measurements are left out.
    """
    counters, window_s = installation.recent.counters, installation.recent.window_s
    labels = {} if pool is None else {"pool": pool}
    num_prompts = sum_without_warm_ups(counters, "caret_assembled_prompts_total", labels)
    inputs: dict[str, float] = {}
    if num_prompts > 0:
        inputs["context_tokens"] = (
            sum_without_warm_ups(counters, "caret_prompt_tokens_total", labels) / num_prompts
        )
        inputs["output_tokens"] = (
            sum_without_warm_ups(counters, "caret_generated_tokens_total", labels) / num_prompts
        )
        # Without a window the counts begin at each gateway's start, so their duration is unknown.
        if window_s:
            inputs["requests_per_s"] = num_prompts / window_s
    if (hit_rate := compute_hit_rate(counters, **labels)) is not None:
        inputs["hit_rate"] = hit_rate
    # Names are counted, because a replica can belong to several pools. A replica counts as up if
    # its health is unknown.
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
