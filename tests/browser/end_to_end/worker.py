"""The installation's worker, triggered immediately instead of on its schedule."""

from caret.celery import app


def run_now(task: str) -> None:
    """Run a task now; `task` is the name of its function in `tenants.tasks`."""
    app.send_task(f"tenants.tasks.{task}", expires=240)
