"""Celery tasks of API keys, sessions, passwords and trials. Running a task twice does no harm.

`caret.celery` has their queues and intervals.
"""

from typing import Final

from celery import shared_task
from django.utils import timezone

from tenants.base.redis_connection import connect_to_redis
from tenants.base.redis_lock import redis_lock
from tenants.identity import trials
from tenants.identity.api_keys import leak_response
from tenants.identity.api_keys import operations as api_keys
from tenants.identity.members import sessions
from tenants.identity.passwords import reset_mail

_RESET_MAIL_HOLD_S: Final = 30.0  # if a run is killed, no other run can start for this time


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def delete_expired_sessions() -> None:
    sessions.delete_expired_sessions(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def mail_reset_links() -> None:
    # One run at a time: a mail server that does not respond must not occupy several workers.
    with redis_lock(
        connect_to_redis(), "password-reset-mail", hold_s=_RESET_MAIL_HOLD_S
    ) as has_lock:
        if has_lock:
            reset_mail.mail_requested_links(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def send_trial_reminders() -> None:
    with redis_lock(connect_to_redis(), "trial-reminders") as has_lock:
        if has_lock:
            trials.send_due_reminders(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def process_leak_reports() -> None:
    leak_response.process_leak_reports(connect_to_redis(), now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def revoke_idle_keys() -> None:
    api_keys.revoke_all_idle_keys(now=timezone.now())
