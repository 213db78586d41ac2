"""Queries of the control plane, and changes in it, from an async test.

A Django connection belongs to its thread and must not be used on the event loop. So each query
runs in another thread, and that thread's connections are closed at the end.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from django.db import connections

Result = TypeVar("Result")


async def in_thread(query: Callable[[], Result]) -> Result:
    def run_query() -> Result:
        try:
            return query()
        finally:
            connections.close_all()

    return await asyncio.to_thread(run_query)
