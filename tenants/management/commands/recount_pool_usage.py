"""`manage.py recount_pool_usage`: counts anew what each pool did on each of the last 90 days."""

from typing import Any

from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.redis_connection import connect
from tenants.fleet.pools.daily_usage import MAX_DAYS, count_days


class Command(NoSystemChecksCommand):
    help = (
        "Counts what the pools did over all tenants, for the operators' figures of cost. A task"
        " does so every few minutes, and of all days once a day: this is for who does not wait."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        num_days = count_days(connect(), num_days=MAX_DAYS, now=timezone.now())
        self.stdout.write(f"{num_days} days with requests counted.")
