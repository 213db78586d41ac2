"""The steps of the run, in their order. Each step is one measurement of one engine variant."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from tests.benchmarks import cancellation_latency, first_token, prefix_reuse
from tests.benchmarks.edit_sessions import make_sessions
from tests.benchmarks.installation import create_home, own_gateway
from tests.benchmarks.results import Report
from tests.gpu.engines import FAST, FAST_PLAIN, QUALITY, QUALITY_OFFLOAD, RunningEngine
from tests.gpu.kv_offload import measure_offloading
from tests.gpu.loads import measure_loads
from tests.gpu.scale import Scale
from tests.gpu.schedule import StepTime
from tests.gpu.speculation import NUM_WINDOWS, measure_speculation

Measure = Callable[[RunningEngine, Report], Coroutine[Any, Any, None]]
_SEED: Final = 1
_NUM_REPEATS: Final = 5
# The model repeats itself. The gateway would stop a longer completion because of the repetition,
# and an engine that is stopped does not report the cached tokens.
_TYPING_TOKENS: Final = 4


@dataclass(frozen=True, slots=True)
class Step:
    time: StepTime
    measure: Measure

    @property
    def name(self) -> str:
        return self.time.name


async def _compare_with_gateway(engine: RunningEngine, report: Report) -> None:
    """Send the same prompts to vLLM directly and through a gateway in front of it."""
    short, long = engine.scale.prompt_tokens
    plan = first_token.Plan(
        {short: "fim", long: "block"}, engine.scale.num_prompts, num_repeats=_NUM_REPEATS
    )
    pools = engine.render_pools(engine.url)
    with (
        create_home() as home,
        own_gateway(home, engine_url=engine.url, replica=engine.url, pools=pools) as running,
    ):
        await first_token.measure(running, plan, report)


async def _measure_typing(engine: RunningEngine, report: Report) -> None:
    """Measure how many tokens of a prompt are cached while a user types."""
    pools = engine.render_pools(engine.url)
    sessions = make_sessions(engine.scale.num_keystrokes, seed=_SEED)
    with (
        create_home() as home,
        own_gateway(home, engine_url=engine.url, replica=engine.url, pools=pools) as running,
    ):
        await prefix_reuse.measure(
            running,
            engine.settings.model,
            sessions,
            report,
            num_keystrokes=engine.scale.num_keystrokes,
            max_tokens=_TYPING_TOKENS,
        )


async def _measure_cancellation(engine: RunningEngine, report: Report) -> None:
    num_cancels = engine.scale.num_cancels
    # A disconnect and a cancel frame differ only in the gateway, which was measured without a GPU.
    counts = cancellation_latency.Counts(num_cancels, num_disconnects=0, num_idle_waits=num_cancels)
    await cancellation_latency.measure(engine.url, counts, report, render_pools=engine.render_pools)


def list_steps(scale: Scale) -> list[Step]:
    num_loads = 2 * len(scale.prompt_tokens) * len(scale.loads)  # cold and warm
    loads_s = scale.step_s + num_loads * scale.window_s
    speculation_s = scale.step_s + NUM_WINDOWS * scale.window_s
    # Engine variant, measurement, needed seconds without the start of the engine, function.
    table: list[tuple[str, str, float, Measure]] = [
        (FAST.name, "first_token", loads_s, measure_loads),
        (FAST.name, "side_by_side", scale.step_s, _compare_with_gateway),
        (FAST.name, "typing", scale.step_s, _measure_typing),
        (FAST.name, "cancellation", scale.step_s, _measure_cancellation),
        (FAST.name, "speculation", speculation_s, measure_speculation),
        (QUALITY.name, "first_token", loads_s, measure_loads),
        (QUALITY.name, "side_by_side", scale.step_s, _compare_with_gateway),
        (QUALITY.name, "cancellation", scale.step_s, _measure_cancellation),
        (QUALITY_OFFLOAD.name, "kv_offload", scale.step_s, measure_offloading),
        (FAST_PLAIN.name, "speculation", speculation_s, measure_speculation),
    ]
    return [
        Step(StepTime(f"{engine}.{measurement}", engine, needed_s), measure)
        for engine, measurement, needed_s, measure in table
    ]
