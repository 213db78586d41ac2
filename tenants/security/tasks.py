"""Celery tasks of the audit log. Each task can safely run twice.

`caret.celery` has the tasks' queues and intervals.
"""

from celery import shared_task
from django.utils import timezone

from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.security.audit import signed_heads


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def sign_audit_heads() -> None:
    signed_heads.sign_all_heads(keys=load_signing_keys(), now=timezone.now())
