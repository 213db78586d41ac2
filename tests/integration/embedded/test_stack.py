"""The running installation that other tests share: it responds, and has the demo tenants."""

from functools import partial
from pathlib import Path

import pytest

from caret.local.processes.health_checks import is_responding
from tests.stack.running import Engine, Stack
from tests.stack.waiting import wait_until


def test_the_gateway_and_the_console_respond(stack: Stack) -> None:
    for url in (stack.gateway_url, stack.console_url):
        # A response may take longer than the time limit of one check.
        wait_until(partial(is_responding, f"{url}/healthz"), timeout_s=60)


def test_the_demo_tenants_exist(stack: Stack) -> None:
    assert [tenant.slug for tenant in stack.tenants] == ["acme", "globex"]


@pytest.mark.engine
def test_the_engine_responds_and_its_process_is_known(engine: Engine) -> None:
    # Another test may have just killed the engine.
    wait_until(lambda: is_responding(f"{engine.url}/v1/models"), timeout_s=120)
    assert Path(f"/proc/{engine.pid}").exists()
