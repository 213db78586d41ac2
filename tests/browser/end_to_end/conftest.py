"""All of Caret, with the real engine, in place of the console alone."""

import pytest

from tests.stack.running import Stack


@pytest.fixture(scope="session")
def console_url(stack: Stack) -> str:
    return stack.console_url
