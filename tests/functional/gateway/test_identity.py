"""A real engine reports the model, block size and tokenizer that the gateway expects of it.

The gateway checks this identity of each replica, and rejects a replica whose identity differs.
"""

import aiohttp
import pytest

from inference.context.tokenization.tokenizer import load_tokenizer
from inference.pools.discovery.replica_identity import PROBE_TEXT
from inference.pools.pool_config import read_pool_config
from inference.pools.vllm.identity import VllmIdentity
from tenants.fleet.pools.scraping.metric_samples import parse_metrics
from tests.functional.gateway.gateway_stack import Site

pytestmark = pytest.mark.engine


async def test_a_real_engine_reports_its_identity_and_is_accepted(site: Site) -> None:
    pool_config = read_pool_config(site.home.paths.pools)
    (pool, *_) = pool_config.by_name.values()

    async with aiohttp.ClientSession() as session:
        identity = await VllmIdentity(session).fetch_identity(pool.replicas[0], pool.model)

    assert identity.root(pool.model)
    assert identity.block_tokens == 32  # --block-size of the CPU profiles
    assert identity.token_ids == tuple(load_tokenizer(pool.tokenizer).encode(PROBE_TEXT))
    assert (identity.max_context_tokens or {})[pool.model] == pool.max_context_tokens
    page = await site.metrics()
    assert "# TYPE caret_replica_rejected gauge" in page
    assert list(parse_metrics(page).all_values("caret_replica_rejected")) == []
