"""Telemetry, put together: what observes completions, and what has to run for it."""

from redis.asyncio import Redis

from caret.contracts.captured_content import TelemetrySealer
from caret.foundation.clock import Clock
from inference.content_capture.send_queue import Outbox
from inference.content_capture.sender import Courier


class Telemetry(Outbox):
    def __init__(self, redis: Redis, *, root_secret: bytes, clock: Clock) -> None:
        super().__init__(clock)
        self.courier = Courier(redis, TelemetrySealer(root_secret), self)
