"""`manage.py recount_pool_usage`: recompute the pools' usage of the last 90 days."""

from typing import Any

from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.redis_connection import connect_to_redis
from tenants.fleet.pools.daily_usage import MAX_DAYS, count_pool_usage


class Command(NoSystemChecksCommand):
    help = (
        "Count the pools' usage over all tenants, for the operators' cost figures. A task counts"
        " the latest days every few minutes, and all days once a day. This command counts all days"
        " now."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        num_days = count_pool_usage(connect_to_redis(), num_days=MAX_DAYS, now=timezone.now())
        self.stdout.write(f"Counted {num_days} days with requests.")
