"""Prometheus' own tool accepts the alerting rules, and they fire as their tests expect."""

import os
import subprocess

import pytest

from tests.stack.monitoring import MONITORING
from tests.stack.prometheus import find_program


@pytest.mark.parametrize(
    "arguments",
    ["check rules alert_rules.yaml", "test rules alert_rules.test.yaml rules.week.test.yaml"],
)
def test_promtool_accepts_the_rules_and_their_tests(arguments: str) -> None:
    command = [find_program("promtool"), *arguments.split()]

    # On several cores, Go spends more CPU time on its scheduler and garbage collector.
    environment = {**os.environ, "GOMAXPROCS": "1", "GOGC": "400"}
    run = subprocess.run(
        command, cwd=MONITORING, env=environment, capture_output=True, text=True, check=False
    )

    assert run.returncode == 0, run.stdout + run.stderr
    assert "SUCCESS" in run.stdout
