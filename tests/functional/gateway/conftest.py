"""Gateways at the session's engine, and requests to them."""

from collections.abc import Iterator

import pytest

from inference.pools.pool_config import read_pool_config
from tests.benchmarks.installation import create_home
from tests.benchmarks.synthetic_code import SUFFIX, CodeText, tier_of
from tests.functional.gateway.gateway_stack import Frame, Site, request_completion, start_site
from tests.stack.running import Engine

# The model must write at least this many tokens. Then a test can interrupt the completion, even on
# a busy machine.
_MIN_LONG_TOKENS = 160
_MAX_TRIES = 5


@pytest.fixture(scope="session")
def site(engine: Engine) -> Iterator[Site]:
    """Run one stack for all tests that leave it unchanged."""
    with create_home() as home, start_site(home, engine.url) as running_site:
        yield running_site


@pytest.fixture
def fragile_site(engine: Engine) -> Iterator[Site]:
    """Run a separate stack for a test that kills parts of it."""
    with create_home() as home, start_site(home, engine.url) as running_site:
        yield running_site


@pytest.fixture(scope="session")
def code(site: Site) -> CodeText:
    """Return a source of code for prompts. No two of its texts begin with the same line."""
    pool = read_pool_config(site.home.paths.pools).find_shared(tier_of("fim"))
    return CodeText(pool, seed=20261120)


@pytest.fixture(scope="session")
async def long_frame(site: Site) -> Frame:
    """Return a request with a long completion that the filter does not truncate.

    The demonstration model continues such a list of constants. Without sampling, it writes the same
    text each time.
    """
    prefix = "".join(f"ERROR_CODE_{n} = {n}\n" for n in range(60))
    frame = {"mode": "fim", "prefix": prefix, "suffix": SUFFIX, "max_tokens": 512}
    async with site.stream() as stream:
        for _ in range(_MAX_TRIES):  # on a busy machine, the first text may be late
            _, done = await request_completion(
                stream, {**frame, "id": site.new_id(), "max_tokens": _MIN_LONG_TOKENS}
            )
            if _begins_early(done["meta"]):
                break
    assert done["finish_reason"] == "length", "the model does not write a long completion"
    assert _begins_early(done["meta"]), "most of the completion is over when its first text arrives"
    return frame


def _begins_early(meta: Frame) -> bool:
    """Return True if the first text was sent in the first half of the time.

    The filter may hold text back, such as white space. Tests interrupt a completion after its first
    text, so there must be time left.
    """
    first_ms = meta["first_token_ms"]
    return first_ms is not None and bool(first_ms < meta["total_ms"] / 2)
