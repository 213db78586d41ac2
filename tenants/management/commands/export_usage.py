"""`manage.py export_usage SLUG --from DAY --to DAY --out FILE`: usage as CSV, NDJSON or Parquet."""

import argparse
import tempfile
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from tenants.errors import Refused
from tenants.exports.definitions import EXPORTS, USAGE_RECORDS, Export
from tenants.exports.formats import FORMATS, Write
from tenants.exports.stream import Period, open_rows
from tenants.exports.written import Written
from tenants.members.actor import Actor, platform_actor
from tenants.members.queries import find_tenant


class Command(BaseCommand):
    # Checks load the console and all of its API, for which an export has no use but the memory.
    requires_system_checks = ()
    help = "Writes a tenant's usage: a row a request, or a row for each day and group."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("slug")
        parser.add_argument("--from", dest="start", type=_day, required=True, help="a day, in UTC")
        parser.add_argument("--to", dest="end", type=_day, required=True, help="the day after it")
        parser.add_argument("--what", choices=sorted(EXPORTS), default=USAGE_RECORDS.name)
        parser.add_argument("--format", choices=sorted(FORMATS), default="csv")
        parser.add_argument("--out", type=Path, required=True, metavar="FILE")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant_id = find_tenant(slug=options["slug"])
        if tenant_id is None:
            raise CommandError(f"There is no tenant {options['slug']}.")
        period = Period(options["start"], options["end"])
        export, write = EXPORTS[options["what"]], FORMATS[options["format"]]
        try:
            written = _write(platform_actor(tenant_id), export, period, write, options["out"])
        except Refused as error:
            raise CommandError(error.message) from error
        except OSError as error:
            raise CommandError(f"It cannot be written: {error.strerror}.") from error
        self.stdout.write(f"{written.rows} rows, SHA-256 {written.sha256}")


def _write(actor: Actor, export: Export, period: Period, write: Write, path: Path) -> Written:
    """Under its name only once it is whole; readable by who wrote it alone."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as out:
        try:
            with open_rows(
                actor=actor, export=export, period=period, now=timezone.now()
            ) as batches:
                written = write(export, batches, out.file)
        except BaseException:
            Path(out.name).unlink()
            raise
    Path(out.name).replace(path)
    return written


def _day(text: str) -> datetime:
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        raise argparse.ArgumentTypeError("write a day such as 2026-11-01") from None
