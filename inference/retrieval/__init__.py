"""Retrieval in the gateway: cached snippets, and queries for newer ones in the background.

snippet_cache.py         recent results
send_queue.py            bounded queue of files and queries
background_snippets.py   implements SnippetSource: reads the cache, fills the queue
redis_client.py          sends the queue's messages to Redis, and receives results
tenant_lru.py            a bounded map with limits by tenant, which the cache, the queue and the
                         client use
redaction.py             removes secrets before text leaves the gateway
Retrieval (below)        composes these parts
"""

from redis.asyncio import Redis

from caret.contracts.retrieval import RetrievalSealer
from caret.foundation.clock import Clock
from inference.retrieval.background_snippets import BackgroundSnippets
from inference.retrieval.redis_client import RetrievalClient
from inference.retrieval.send_queue import SendQueue
from inference.retrieval.snippet_cache import SnippetCache


class Retrieval(BackgroundSnippets):
    """The SnippetSource of a gateway. A background task must run `client`."""

    def __init__(self, redis: Redis, *, root_secret: bytes, clock: Clock) -> None:
        cache, queue = SnippetCache(clock), SendQueue(clock)
        super().__init__(cache, queue)
        self.client = RetrievalClient(
            redis, RetrievalSealer(root_secret), cache=cache, queue=queue, clock=clock
        )
