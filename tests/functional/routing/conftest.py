from collections.abc import Iterator

import pytest

from inference.pools.catalog import read_catalog
from tests.benchmarks.code_text import CodeText, tier_of
from tests.benchmarks.installation import own_home
from tests.benchmarks.replicas import OwnReplica, own_replicas
from tests.functional.gateway.site import Site, own_site


@pytest.fixture(scope="module")
def replicas() -> Iterator[list[OwnReplica]]:
    with own_replicas(2) as started:
        yield started


@pytest.fixture(scope="module")
def site(replicas: list[OwnReplica]) -> Iterator[Site]:
    """A gateway whose pools have both."""
    entries = [replica.entry for replica in replicas]
    with own_home() as home, own_site(home, replicas[0].url, replicas=entries) as made:
        yield made


@pytest.fixture(scope="module")
def code(site: Site) -> CodeText:
    """Prompts of which no two begin alike."""
    return CodeText(read_catalog(site.home.paths.pools).shared(tier_of("fim")), seed=20261121)
