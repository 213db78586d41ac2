"""Celery tasks of rating, invoices, budgets and Stripe. Each can safely run twice.

`caret.celery` sets the queue and the interval of each task.
"""

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from tenants.billing.budgets import alert_delivery
from tenants.billing.invoices import operations as invoices
from tenants.billing.rating import operations as rating
from tenants.billing.stripe.client import HttpStripe
from tenants.billing.stripe.operations import report_all_tenants


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def rate_usage() -> None:
    rating.rate_all_tenants(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def deliver_budget_alerts() -> None:
    alert_delivery.deliver_all_alerts(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def issue_invoices() -> None:
    invoices.issue_due_invoices_of_all_tenants(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def report_to_stripe() -> None:
    if settings.STRIPE_KEY is not None:
        stripe = HttpStripe(settings.STRIPE_URL, settings.STRIPE_KEY)
        report_all_tenants(stripe, now=timezone.now())
