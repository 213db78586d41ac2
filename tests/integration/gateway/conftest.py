import subprocess
import sys
from collections.abc import Iterator

import pytest

from caret.embedded.paths import REPOSITORY


@pytest.fixture
def fake_engine_url() -> Iterator[str]:
    command = [sys.executable, "-m", "tests.integration.gateway.fake_engine"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.stdin.close()
            process.wait(timeout=5.0)
