"""A test's own company in the control plane, queried from an async test.

Django's connections belong to their thread and must not be used on the event loop. So each query
runs in its own thread, which closes its connections.
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
