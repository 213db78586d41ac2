"""A gateway for all tests of editors."""

from collections.abc import Iterator

import pytest

from tests.benchmarks.installation import create_home
from tests.functional.gateway.gateway_stack import Site, start_site
from tests.stack.running import Engine


@pytest.fixture(scope="session")
def site(engine: Engine) -> Iterator[Site]:
    """Run a stack with one gateway. A test that stops the gateway must start it again."""
    with create_home() as home, start_site(home, engine.url) as running_site:
        yield running_site
