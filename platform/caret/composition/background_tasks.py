"""What runs beside the requests, from the plane's opening to its end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final

import structlog

from caret.foundation.log_config import describe

_AFTER_DEFECT_S: Final = 1.0
Run = Callable[[], Awaitable[None]]
log = structlog.get_logger(__name__)


@asynccontextmanager
async def run_background_tasks(work: Iterable[tuple[str, Run]]) -> AsyncIterator[None]:
    """Each by its name in the log; on leaving all are cancelled, and have ended."""
    tasks = [asyncio.create_task(_keep_running(name, run)) for name, run in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _keep_running(name: str, run: Run) -> None:
    """A defect in the background is logged and does not end the work: without it revocations or
    records would stop in silence."""
    while True:
        try:
            await run()
        except Exception as defect:  # noqa: BLE001  # the edge of a background task
            log.error("background.internal_error", task=name, **describe(defect))
            await asyncio.sleep(_AFTER_DEFECT_S)
