"""Retrieval, put together: the snippets of requests, and what has to run for them."""

from redis.asyncio import Redis

from caret.contracts.retrieval import Sealer
from caret.foundation.clock import Clock
from inference.retrieval.courier import Courier
from inference.retrieval.memory import Memory
from inference.retrieval.outbox import Outbox
from inference.retrieval.snippets import BackgroundSnippets


class Retrieval(BackgroundSnippets):
    def __init__(self, redis: Redis, *, root_secret: bytes, clock: Clock) -> None:
        memory, outbox = Memory(clock), Outbox(clock)
        super().__init__(memory, outbox)
        self.courier = Courier(
            redis, Sealer(root_secret), memory=memory, outbox=outbox, clock=clock
        )
