"""LiteLLM's proxy and vLLM's router, each installed from PyPI into its own virtual environment."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from caret.local.errors import ServiceFailed
from caret.local.paths import REPOSITORY
from tests.benchmarks.installation import Home
from tests.benchmarks.processes import Cores, Program, running
from tests.benchmarks.results import say
from tests.benchmarks.synthetic_engine import MODEL
from tests.stack.ports import free_port

FOLDER: Final = REPOSITORY / ".caret" / "benchmarks"
_INSTALL_TIMEOUT_S: Final = 300.0
_MAX_REASON_CHARS: Final = 300  # of the output of a failed installation
KEY: Final = "sk-benchmark"


@dataclass(frozen=True, slots=True)
class Competitor:
    name: str
    package: str  # with its extras
    # Package indexes differ: the first version that can be installed is used.
    versions: Sequence[str]


@dataclass(frozen=True, slots=True)
class RunningCompetitor:
    url: str
    version: str
    pid: int


class NotMeasured(Exception):
    """A competitor could not be installed, started or measured; the text says why."""


LITELLM: Final = Competitor("litellm", "litellm[proxy]", ("1.109.1", "1.106.2"))
VLLM_ROUTER: Final = Competitor("vllm-router", "vllm-router", ("0.1.17",))


@contextmanager
def running_competitor(
    competitor: Competitor, home: Home, *, engine_url: str, cores: Cores
) -> Iterator[RunningCompetitor]:
    """Install the competitor and run it in front of the engine.

    Raises NotMeasured.
    """
    version, folder = _find_or_install(competitor)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    make = _make_litellm_program if competitor is LITELLM else _make_round_robin_program
    program = make(folder, home, engine_url, port)
    context = running(home, program, cores=cores)
    # Not a `with` block: a ServiceFailed of the caller's block must not become NotMeasured.
    try:
        pid = context.__enter__()
    except ServiceFailed as error:
        raise NotMeasured(str(error)) from error
    try:
        yield RunningCompetitor(url, version, pid)
    finally:
        context.__exit__(None, None, None)


def _make_litellm_program(folder: Path, home: Home, engine_url: str, port: int) -> Program:
    """Return the fastest configuration of LiteLLM: one master key, no database, logs or
    callbacks."""
    config = {
        "model_list": [
            {
                "model_name": MODEL,
                "litellm_params": {
                    "model": f"text-completion-openai/{MODEL}",
                    "api_base": f"{engine_url}/v1",
                    "api_key": "none",
                },
            }
        ],
        "general_settings": {"master_key": KEY},
    }
    file = home.paths.home / "litellm.yaml"
    file.write_text(json.dumps(config))  # JSON is YAML
    return Program(
        name="litellm",
        command=(
            *(str(folder / "bin" / "litellm"), "--config", str(file)),
            *("--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"),
        ),
        ready_url=f"http://127.0.0.1:{port}/health/liveliness",
        environment={"LITELLM_LOG": "ERROR", "LITELLM_MODE": "PRODUCTION"},
    )


@contextmanager
def running_router(
    home: Home, engine_urls: Sequence[str], *, policy: str, cores: Cores
) -> Iterator[RunningCompetitor]:
    """Run vLLM's router in front of several engines.

    Raises NotMeasured if it cannot be installed, ServiceFailed if it does not start.
    """
    version, folder = _find_or_install(VLLM_ROUTER)
    port = free_port()
    program = _make_router_program(folder, engine_urls, port, policy)
    with running(home, program, cores=cores) as pid:
        yield RunningCompetitor(f"http://127.0.0.1:{port}", version, pid)


def _make_round_robin_program(folder: Path, _home: Home, engine_url: str, port: int) -> Program:
    return _make_router_program(folder, [engine_url], port, "round_robin")


def _make_router_program(folder: Path, urls: Sequence[str], port: int, policy: str) -> Program:
    return Program(
        name="vllm-router",
        command=(
            *(str(folder / "bin" / "vllm-router"), "--worker-urls", *urls),
            *("--host", "127.0.0.1", "--port", str(port), "--policy", policy),
            *("--prometheus-port", str(free_port()), "--log-level", "warning"),
        ),
        ready_url=f"http://127.0.0.1:{port}/health",
        environment={},
    )


def _find_or_install(competitor: Competitor) -> tuple[str, Path]:
    """Return the version and the folder of its virtual environment, created if necessary.

    Raises NotMeasured.
    """
    failures = []
    for version in competitor.versions:
        folder = FOLDER / f"{competitor.name}-{version}"
        if (folder / "complete").exists():
            return version, folder
        say(f"Installing {competitor.name} {version}")
        failure = _install(f"{competitor.package}=={version}", folder)
        if failure is None:
            (folder / "complete").touch()
            return version, folder
        failures.append(f"{version}: {failure}")
    raise NotMeasured("; ".join(failures))


def _install(requirement: str, folder: Path) -> str | None:
    """Install the requirement into the folder; return the reason if that fails, or None."""
    commands = (
        ("venv", "--quiet", "--clear", "--python", sys.executable, str(folder)),
        ("pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), requirement),
    )
    for command in commands:
        try:
            subprocess.run(
                (sys.executable, "-m", "uv", *command),
                capture_output=True,
                text=True,
                check=True,
                timeout=_INSTALL_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired:
            return "it took too long"
        except subprocess.CalledProcessError as error:
            return " ".join(error.stderr.split())[:_MAX_REASON_CHARS]
    return None
