"""Tasks of the installation's worker that run immediately instead of on their schedule."""

from caret.celery import app


def run_now(task: str) -> None:
    """Run a task now; `task` is its Celery name."""
    app.send_task(task, expires=240)  # seconds, for which tests wait at most
