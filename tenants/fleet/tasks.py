"""Celery tasks of snapshots, plans, pools and public code.

`caret.celery` has the queues and intervals of the tasks. A task that may take longer than its
interval has a `redis_lock`, so that it does not occupy several workers. A repeated run of a task is
harmless.
"""

from celery import shared_task
from django.utils import timezone

from tenants.base.redis_connection import connect_to_redis
from tenants.base.redis_lock import redis_lock
from tenants.fleet import public_code
from tenants.fleet.pools import daily_usage, model_catalog
from tenants.fleet.pools.scraping import installation_status, recent_scrapes
from tenants.fleet.snapshots import publisher


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def republish_snapshots() -> None:
    publisher.republish_stale_snapshots(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def refresh_started_plans() -> None:
    """Publish the snapshots of tenants whose plan starts today: a plan determines the models."""
    with redis_lock(connect_to_redis(), "started-plans") as has_lock:
        if has_lock:
            model_catalog.refresh_started_plans(now=timezone.now())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def scrape_gateways() -> None:
    now = timezone.now()
    installation = installation_status.read_installation_status(now=now)
    recent_scrapes.store_scrapes(connect_to_redis(), installation.scrapes, now_s=now.timestamp())
    daily_usage.record_replica_seconds(connect_to_redis(), installation, now=now)
    installation_status.record_capabilities(installation.scrapes, now=now)


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def build_public_code_index() -> None:
    with redis_lock(connect_to_redis(), "public-code-index") as has_lock:
        if has_lock:
            public_code.build_requested_index(connect_to_redis())


@shared_task  # type: ignore[untyped-decorator]  # celery has no types
def count_pool_usage() -> None:
    with redis_lock(connect_to_redis(), "pool-days") as has_lock:
        if has_lock:
            daily_usage.count_recent_pool_usage(connect_to_redis(), now=timezone.now())
