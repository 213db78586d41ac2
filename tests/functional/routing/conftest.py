"""A gateway with two engines, of which one uses speculative decoding."""

import json
from collections.abc import Iterator
from typing import Final

import pytest

from inference.pools.pool_config import read_pool_config
from tests.benchmarks.installation import create_home
from tests.benchmarks.replicas import OwnReplica, own_replicas_of
from tests.benchmarks.synthetic_code import CodeText, tier_of
from tests.functional.gateway.gateway_stack import Site, start_site

NGRAM: Final = {
    "method": "ngram",
    "num_speculative_tokens": 2,
    "prompt_lookup_min": 2,
    "prompt_lookup_max": 3,
}
_METRICS_INTERVAL_S: Final = 1  # after which the gateway reads the engines' metrics again


@pytest.fixture(scope="module")
def replicas() -> Iterator[list[OwnReplica]]:
    """Start two replicas. Only the second one uses speculative decoding."""
    with own_replicas_of((), ("--speculative-config", json.dumps(NGRAM))) as started:
        yield started


@pytest.fixture(scope="module")
def site(replicas: list[OwnReplica]) -> Iterator[Site]:
    """Run a gateway whose pools contain both replicas."""
    entries = [replica.entry for replica in replicas]
    with create_home() as home:
        home.environment["CARET_ENGINE_METRICS_INTERVAL_S"] = str(_METRICS_INTERVAL_S)
        # The time after which a language with low acceptance leaves the replica with speculation.
        home.environment["CARET_SPECULATION_FALLBACK_S"] = "2"
        with start_site(home, replicas[0].url, replicas=entries) as running_site:
            yield running_site


@pytest.fixture(scope="module")
def code(site: Site) -> CodeText:
    """Return a source of code for prompts. No two of its texts begin with the same line."""
    return CodeText(
        read_pool_config(site.home.paths.pools).find_shared(tier_of("fim")), seed=20261121
    )
