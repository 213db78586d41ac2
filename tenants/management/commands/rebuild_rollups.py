"""`manage.py rebuild_rollups SLUG --from DAY --to DAY`: recompute a tenant's rollups."""

import argparse
from datetime import UTC, date, datetime, time
from typing import Any, Final

from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError
from tenants.base.redis_connection import connect_to_redis
from tenants.security.authorization.directory import find_tenant
from tenants.usage.ingestion.redis_stream import UsageStream
from tenants.usage.rollups.operations import MAX_DAYS, mark_period_dirty, roll_up_tenant

_DAY_HELP: Final = "a day, such as 2026-11-01"


class Command(NoSystemChecksCommand):
    help = (
        "Count hours and days again from usage records, outcomes and typing reports. Hours whose"
        " records were purged keep their counts."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--from", dest="first", type=_read_day, required=True, help=_DAY_HELP)
        parser.add_argument(
            "--to", dest="end", type=_read_day, required=True, help=f"{_DAY_HELP}, exclusive"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        tenant_id = find_tenant(slug=options["slug"])
        if tenant_id is None:
            raise CommandError(f"There is no tenant {options['slug']}.")
        first, end = options["first"], options["end"]
        if not 0 < (end - first).days <= MAX_DAYS:
            raise CommandError(f"The period must have 1 to {MAX_DAYS} days; --to is exclusive.")
        stream = UsageStream(connect_to_redis(), consumer="roll-up")
        # All records that reached Redis by this time are in the tables.
        arrived_until = stream.find_arrived_until(now=timezone.now())
        try:
            mark_period_dirty(tenant_id=tenant_id, start=first, end=end)
        except DomainError as error:
            raise CommandError(error.message) from error
        days = roll_up_tenant(tenant_id=tenant_id, arrived_until=arrived_until)
        self.stdout.write(f"{options['slug']}: {days} days recounted.")


def _read_day(text: str) -> datetime:
    """Return the midnight (UTC) at the beginning of a day."""
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"write {_DAY_HELP}") from error
