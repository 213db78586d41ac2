"""Background tasks that run beside the requests while the data plane is open."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final

import structlog

from caret.foundation.log_config import describe

_RESTART_DELAY_S: Final = 1.0
Run = Callable[[], Awaitable[None]]  # runs a background task until it is cancelled
log = structlog.get_logger(__name__)


@asynccontextmanager
async def run_background_tasks(named_runs: Iterable[tuple[str, Run]]) -> AsyncIterator[None]:
    """Run each function in a task until the block ends. Then cancel the tasks and wait for them.

    The names are for logs.
    """
    tasks = [asyncio.create_task(_keep_running(name, run)) for name, run in named_runs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _keep_running(name: str, run: Run) -> None:
    """Run a function, and start it again when it ends. After an unexpected error, log it and wait.

    Otherwise, a defect would stop revocations or usage records, and nobody would notice.
    """
    while True:
        try:
            await run()
        except Exception as defect:  # noqa: BLE001  # the outermost frame of a background task
            log.error("background.internal_error", task=name, **describe(defect))
            await asyncio.sleep(_RESTART_DELAY_S)
