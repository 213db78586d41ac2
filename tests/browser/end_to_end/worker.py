"""The installation's worker, asked to do now what it does by and by."""

from caret.celery import app


def run_now(task: str) -> None:
    """`task`: its function's name in `tenants.tasks`."""
    app.send_task(f"tenants.tasks.{task}", expires=240)
