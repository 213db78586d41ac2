"""A test's own company in the control plane, queried from an async test.

Django's connections belong to their thread and must not be used on the event loop. So each query
runs in its own thread, which closes its connections.
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
