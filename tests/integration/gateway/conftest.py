"""A gateway with a fake engine, for tests of the gateway itself."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from caret.local.paths import REPOSITORY
from tests.benchmarks.installation import create_home
from tests.functional.gateway.gateway_stack import Site, start_site

# pytest calls the hook by its name in this file.
from tests.stack.schemathesis_plugin import pytest_configure as pytest_configure


@pytest.fixture(scope="session")
def fake_engine_url() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.integration.gateway.fake_engine"]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.stdin.close()
            process.wait(timeout=60.0)


@pytest.fixture(scope="session")
def quick_site(fake_engine_url: str) -> Iterator[Site]:
    """A gateway with a fake engine, shared by tests. They must not stop or reconfigure it."""
    with create_home() as home, start_site(home, fake_engine_url) as site:
        yield site
