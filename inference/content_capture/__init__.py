"""Content capture: prompts and completions of users who consented. Requests never wait for it.

capture.py       selects the content of a completion that may be stored
send_queue.py    bounded queue of content to send
sender.py        redacts and encrypts content, and writes it to Redis
ContentCapture   composes these parts
"""

from redis.asyncio import Redis

from caret.contracts.captured_content import ContentSealer
from caret.foundation.clock import Clock
from inference.content_capture.send_queue import ContentQueue
from inference.content_capture.sender import ContentSender


class ContentCapture(ContentQueue):
    def __init__(self, redis: Redis, *, root_secret: bytes, clock: Clock) -> None:
        super().__init__(clock)
        self.sender = ContentSender(redis, ContentSealer(root_secret), self)
