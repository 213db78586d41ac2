from collections.abc import Iterator

import pytest

from tests.benchmarks.installation import own_home
from tests.functional.gateway.gateway_stack import Site, own_site
from tests.stack.running import Engine


@pytest.fixture(scope="session")
def site(engine: Engine) -> Iterator[Site]:
    """With one gateway, which a test may stop when it starts it again."""
    with own_home() as home, own_site(home, engine.url) as made:
        yield made
