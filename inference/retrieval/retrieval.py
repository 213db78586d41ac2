"""Retrieval, put together: the snippets of requests, and what has to run for them."""

from redis.asyncio import Redis

from caret.contracts.retrieval import Sealer
from caret.foundation.clock import Clock
from inference.retrieval.background_snippets import BackgroundSnippets
from inference.retrieval.redis_client import RetrievalClient
from inference.retrieval.send_queue import SendQueue
from inference.retrieval.snippet_cache import SnippetCache


class Retrieval(BackgroundSnippets):
    def __init__(self, redis: Redis, *, root_secret: bytes, clock: Clock) -> None:
        memory, outbox = SnippetCache(clock), SendQueue(clock)
        super().__init__(memory, outbox)
        self.client = RetrievalClient(
            redis, Sealer(root_secret), memory=memory, outbox=outbox, clock=clock
        )
