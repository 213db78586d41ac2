"""Pools and requests to them."""

from typing import Any

from caret.contracts.policy import Tier
from caret.foundation.ids import CacheSalt
from inference.pools.catalog import Pool, Replica
from inference.pools.engine import EngineRequest


def make_pool(*urls: str, tier: Tier = Tier.FAST) -> Pool:
    return Pool(
        name=f"demo-{tier}",
        tier=tier,
        model="demo",
        tokenizer="",
        max_context_tokens=4096,
        replicas=tuple(
            Replica(name=url.removeprefix("http://"), url=url)
            for url in urls or ("http://engine-1:8000",)
        ),
    )


def make_engine_request(url: str = "http://engine-1:8000", **fields: Any) -> EngineRequest:
    pool = make_pool(url)
    defaults: dict[str, Any] = {
        "pool": pool,
        "replica": pool.replicas[0],
        "token_ids": [1, 2, 3],
        "stop_token_ids": [0],
        "stop": (),
        "max_tokens": 8,
        "salt": CacheSalt("0" * 64),
        "priority": 0,
    }
    return EngineRequest(**{**defaults, **fields})
