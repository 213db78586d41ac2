"""The Celery worker with its scheduler (beat), as in production."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.stack.services import Services

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def running_worker(
    services: Services, folder: Path, *, queue: str, **settings: str
) -> Iterator[Path]:
    """Run the worker with these additional settings, and yield the path of its log in `folder`.

    It serves only this queue. Otherwise, on a busy machine, the tasks of other queues would delay
    the test.
    """
    log = folder / "worker.log"
    paths = os.pathsep.join([str(ROOT), str(ROOT / "platform")])
    environment = {**os.environ, **services.process_mark, "PYTHONPATH": paths, **settings}
    command = [sys.executable, "-m", "celery", "-A", "caret.celery", "worker", "--beat"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, "--concurrency", "1", "--queues", queue],
            cwd=ROOT,
            env=environment,
            stderr=output,
        )
        try:
            yield log
        finally:
            process.terminate()
            process.wait(timeout=300)  # on two cores that other tests use too
