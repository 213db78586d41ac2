"""`manage.py seed_demo_data`. See tenants.demo.operations."""

import argparse
from typing import Any, Final

from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError
from tenants.demo.operations import DemoDataExists, SeedOptions, seed_tenant
from tenants.demo.tenants import TENANT_NAMES

_MIN_DAYS_PER_MONTH: Final = 28  # for the largest number of months that the days can span
_SLUGS: Final = tuple(TENANT_NAMES)  # of the demonstration tenants


class Command(NoSystemChecksCommand):
    help = (
        "Fill the demonstration tenants once with generated users, usage, invoices, policies and"
        " evidence, so that every page of the console has data. Other tenants do not change."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--slug", action="append", help=f"slug of a tenant; default: {' and '.join(_SLUGS)}"
        )
        parser.add_argument("--days", type=int, default=92, help="days of usage to generate")
        parser.add_argument("--people", type=int, default=40, help="users to generate per tenant")
        parser.add_argument("--seed", type=int, default=1, help="seed of the random data")
        parser.add_argument(
            "--skip-filled", action="store_true", help="skip tenants that are already filled"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        call_command(
            "create_partitions", past=options["days"] // _MIN_DAYS_PER_MONTH + 1, stdout=self.stdout
        )
        for slug in options["slug"] or _SLUGS:
            seed_options = SeedOptions(slug, options["days"], options["people"], options["seed"])
            self._seed_tenant(seed_options, skip_filled=options["skip_filled"])

    def _seed_tenant(self, seed_options: SeedOptions, *, skip_filled: bool) -> None:
        try:
            row_counts = seed_tenant(
                seed_options,
                now=timezone.now(),
                report_progress=lambda text: self.stdout.write(f"{seed_options.slug}: {text}"),
            )
        except DomainError as error:
            if skip_filled and isinstance(error, DemoDataExists):
                self.stdout.write(error.message)
                return
            raise CommandError(error.message) from error
        summary = ", ".join(f"{num} {name}" for name, num in row_counts.items())
        self.stdout.write(f"{seed_options.slug}: {summary}.")
