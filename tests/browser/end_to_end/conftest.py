"""The tests of this folder use a complete installation with the real engine, not only a console."""

import pytest

from tests.stack.running import Stack


@pytest.fixture(scope="session")
def console_url(stack: Stack) -> str:
    return stack.console_url
