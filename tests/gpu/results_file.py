"""The figures of all steps so far, in one JSON file. It is saved after each step."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.gpu.requirements import Refusal


@dataclass(slots=True)
class ResultsFile:
    path: Path
    about: dict[str, str]  # the shape, the GPU and vLLM: the same for all steps
    # The printed lines of each step that is done.
    steps: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)  # steps that missed a target
    failures: dict[str, str] = field(default_factory=dict)  # the last error of each failed step
    start_s: dict[str, float] = field(default_factory=dict)  # duration of each engine's last start

    def add_step(self, name: str, lines: list[dict[str, Any]], *, has_missed_target: bool) -> None:
        self.steps[name] = lines
        self.failures.pop(name, None)
        self.missed = [other for other in self.missed if other != name]
        if has_missed_target:
            self.missed.append(name)
        self.save()

    def add_failure(self, name: str, sentence: str) -> None:
        self.failures[name] = sentence
        self.save()

    def add_start(self, engine: str, seconds: float) -> None:
        self.start_s[engine] = round(seconds, 1)
        self.save()

    def save(self) -> None:
        content = {
            "about": self.about,
            "steps": self.steps,
            "missed": self.missed,
            "failures": self.failures,
            "start_s": self.start_s,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_name(self.path.name + ".new")
        draft.write_text(json.dumps(content, indent=1) + "\n")
        os.replace(draft, self.path)  # noqa: PTH105  # readers see the old or the new file


def read_results(path: Path, about: dict[str, str]) -> ResultsFile:
    """Read the file, or return an empty one if it does not exist. Raises Refusal."""
    if not path.exists():
        return ResultsFile(path, about)
    results = load_results(path)
    if results.about != about:
        raise Refusal(
            f"{path} has figures of {_describe(results.about)}, not of {_describe(about)}:"
            " name another file with --results."
        )
    return results


def load_results(path: Path) -> ResultsFile:
    """Read a file of any machine. Raises Refusal."""
    try:
        return ResultsFile(path, **json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        raise Refusal(
            f"{path} is truncated or not a results file: remove it, or name another with --results."
        ) from None


def _describe(about: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in about.items())
