"""Prometheus' own tool accepts the alerting rules, and they fire as their tests expect."""

import subprocess

import pytest

from tests.stack.prometheus import program
from tests.stack.watching import WATCHING


@pytest.mark.parametrize(
    "words",
    ["check rules alert_rules.yaml", "test rules alert_rules.test.yaml rules.week.test.yaml"],
)
def test_promtool_finds_nothing_wrong(words: str) -> None:
    command = [program("promtool"), *words.split()]

    run = subprocess.run(command, cwd=WATCHING, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stdout + run.stderr
    assert "SUCCESS" in run.stdout
