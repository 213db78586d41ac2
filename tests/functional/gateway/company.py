"""A company of a test's own in the control plane, asked from an async test.

Django's connections belong to their thread, and none may be used on the event loop: each question
has a thread of its own, which closes what it opened.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from django.db import connections

Answer = TypeVar("Answer")


async def in_thread(question: Callable[[], Answer]) -> Answer:
    def ask() -> Answer:
        try:
            return question()
        finally:
            connections.close_all()

    return await asyncio.to_thread(ask)
