"""The GPU acceptance run on a CPU: the same steps with a very small model."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from caret.local.paths import REPOSITORY
from tests.gpu.scale import TINY_SCALE
from tests.gpu.steps import list_steps

pytestmark = [pytest.mark.engine, pytest.mark.deep]
STEP_NAMES = [step.name for step in list_steps(TINY_SCALE)]
LAST_STEP = "fast-plain.speculation"


def run_acceptance(results: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    options = ("--shape", "tiny", "--results", str(results), *arguments)
    process = subprocess.run(
        [sys.executable, "-m", "tests.gpu", *options],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return process


def read_figures(results: Path) -> dict[str, dict[str, Any]]:
    """Return the last line of each figure, by "STEP FIGURE": "fast.typing stable.cached"."""
    steps = json.loads(results.read_text())["steps"]
    return {f"{step} {line['figure']}": line for step in steps for line in steps[step]}


def read_acceptance(results: Path) -> dict[str, float]:
    """Return the share of drafted tokens that the engine accepted, by text: repeating, random."""
    lines = json.loads(results.read_text())["steps"]["fast.speculation"]
    return {line["text"]: line["acceptance"] for line in lines}


def test_a_call_runs_one_chosen_step_and_the_next_call_runs_the_missing_steps(
    tmp_path: Path,
) -> None:
    results = tmp_path / "tiny.json"

    first_call = run_acceptance(results, "--only", LAST_STEP, "--minutes", "10")
    first_steps = set(json.loads(results.read_text())["steps"])
    second_call = run_acceptance(results, "--minutes", "60")

    assert f'"benchmark": "gpu.{LAST_STEP}"' in first_call.stdout
    assert first_steps == {LAST_STEP}
    assert f'"benchmark": "gpu.{LAST_STEP}"' not in second_call.stdout
    content = json.loads(results.read_text())
    assert set(content["steps"]) == set(STEP_NAMES)
    assert content["failures"] == {}
    figures = read_figures(results)
    # "cached" is the percentage of a prompt's tokens that came from the prefix cache. 600 is the
    # length of the long prompts in tokens.
    assert figures["fast.first_token first_token.warm.600"]["cached_percent"] > 80
    assert figures["fast.first_token first_token.cold.600"]["cached_percent"] == 0
    assert figures["fast.typing stable.cached"]["value"] > 50
    assert figures["fast.cancellation engine_idle.p50"]["value"] > 0
    assert figures["quality-offload.kv_offload warm.cached"]["value"] > 80
    # vLLM's CPU build has no offloading, so nothing is restored.
    assert figures["quality-offload.kv_offload restored.cached"]["value"] == 0
    assert figures["fast.typing gateway.cached"]["value"] > 50
    assert read_acceptance(results)["repeating"] > 0.9
    assert figures["fast-plain.speculation tokens_per_s"]["num_drafted"] == 0


def test_a_step_that_would_not_end_in_time_is_not_started(tmp_path: Path) -> None:
    results = tmp_path / "tiny.json"

    process = run_acceptance(results, "--minutes", "0.1")

    assert process.stdout == ""
    assert f"0 of {len(STEP_NAMES)} steps are done" in process.stderr
    assert "use a larger --minutes" in process.stderr
