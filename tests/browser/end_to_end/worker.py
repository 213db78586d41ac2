"""The installation's worker, triggered immediately instead of on its schedule."""

from caret.celery import app


def run_now(task: str) -> None:
    """Run a task now; `task` is its Celery name."""
    app.send_task(task, expires=240)
