"""Tasks of the installation's worker that run immediately instead of on their schedule."""

from caret.celery import app


def run_now(task: str) -> None:
    """Tell the worker to run a task now, without waiting for it; `task` is its Celery name."""
    app.send_task(task, expires=240)  # seconds; no test waits longer for the effect
