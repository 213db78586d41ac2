"""`manage.py create_partitions`. Run it after each migration, and at least monthly."""

import argparse
from typing import Any

from django.db import connections
from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from caret.foundation.postgres import OWNER_ALIAS
from caret.foundation.postgres.partitions import Month, ensure_month
from tenants.models.usage import PARTITIONED_TABLES


class Command(NoSystemChecksCommand):
    help = "Create the monthly partitions of the usage tables, as the tables' owner."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--months", type=int, default=3, help="number of months ahead")
        parser.add_argument("--past", type=int, default=1, help="number of months back")

    def handle(self, *args: Any, **options: Any) -> None:
        now = timezone.now()
        this_month = Month(now.year, now.month)
        for table in PARTITIONED_TABLES:
            for offset in range(-options["past"], options["months"] + 1):
                month = this_month.plus_months(offset)
                if ensure_month(connections[OWNER_ALIAS], table, month):
                    self.stdout.write(f"{table}: created {month.year}-{month.number:02}")
