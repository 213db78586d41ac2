"""`manage.py export_usage SLUG --from DAY --to DAY --out FILE`: export a tenant's usage.

The proof is FILE.proof.json; `manage.py verify_export FILE` verifies FILE with this proof.
"""

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError
from tenants.compliance.exports.definitions.usage import EXPORTS, USAGE_RECORDS
from tenants.compliance.exports.digesting_writer import WriteDigest
from tenants.compliance.exports.export import Export
from tenants.compliance.exports.formats.text import FORMATS
from tenants.compliance.exports.proof import ProvenFile, sign_proof, start_proof
from tenants.compliance.exports.row_stream import read_rows
from tenants.compliance.exports.rows import Period, RowQuery
from tenants.compliance.exports.verification import PROOF_SUFFIX
from tenants.security.authorization.actor import build_system_actor
from tenants.security.authorization.directory import find_tenant

_EXPORTS = {export.name: export for export in EXPORTS}


class Command(NoSystemChecksCommand):
    help = "Write a tenant's usage: one row for each request, or for each day and group."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("slug")
        parser.add_argument(
            "--from", dest="start", type=_read_day, required=True, help="first day, in UTC"
        )
        parser.add_argument(
            "--to", dest="end", type=_read_day, required=True, help="day after the last one"
        )
        parser.add_argument(
            "--what", choices=sorted(_EXPORTS), default=USAGE_RECORDS.name, help="rows to export"
        )
        parser.add_argument("--format", choices=sorted(FORMATS), default="csv")
        parser.add_argument("--out", type=Path, required=True, metavar="FILE")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant_id = find_tenant(slug=options["slug"])
        if tenant_id is None:
            raise CommandError(f"There is no tenant {options['slug']}.")
        period = Period(options["start"], options["end"])
        query = RowQuery(build_system_actor(tenant_id), period, timezone.now())
        try:
            digest = _write_export(
                query, _EXPORTS[options["what"]], options["format"], options["out"]
            )
        except DomainError as error:
            raise CommandError(error.message) from error
        except OSError as error:
            raise CommandError(f"Cannot write {options['out']}: {error.strerror}.") from error
        self.stdout.write(f"{digest.rows} rows, SHA-256 {digest.sha256}")


def _write_export(query: RowQuery, export: Export, media: str, path: Path) -> WriteDigest:
    """Write the file and its proof. `media` is the name of a format, for example csv.

    Raises DomainError, OSError.
    """
    beginning = start_proof(export, query)
    with _write_atomically(path) as out:
        digest = FORMATS[media](export, read_rows(export, query), out)
        with _write_atomically(path.with_name(path.name + PROOF_SUFFIX)) as proof:
            proof.write(
                sign_proof(
                    tenant_id=query.tenant_id,
                    file=ProvenFile(
                        export_id=None,
                        definition=export.name,
                        version=export.version,
                        media=media,
                        name=path.name,
                        period=query.period,
                    ),
                    beginning=beginning,
                    digest=digest,
                    now=timezone.now(),
                )
            )
    return digest


@contextmanager
def _write_atomically(path: Path) -> Iterator[IO[bytes]]:
    """Yield a file with a temporary name, and rename it at the end.

    Only the owner of the file can read it.
    """
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as out:
        try:
            yield out.file
        except BaseException:
            Path(out.name).unlink()
            raise
    Path(out.name).replace(path)


def _read_day(text: str) -> datetime:
    """Return the midnight (UTC) at the beginning of a day."""
    try:
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        raise argparse.ArgumentTypeError("write a day such as 2026-11-01") from None
