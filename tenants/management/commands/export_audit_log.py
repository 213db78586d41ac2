"""`manage.py export_audit_log TENANT [--from DATE] [--to DATE] --out FILE`.

See tenants.security.audit.export.
"""

import argparse
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError
from tenants.base.signatures.signing_keys import load_signing_keys
from tenants.base.validation.text import parse_reason
from tenants.security.audit.export import AuditExportPeriod, ChainRange, write_export
from tenants.security.authorization.actor import Actor, build_system_actor
from tenants.security.authorization.directory import find_tenant


class Command(NoSystemChecksCommand):
    help = "Write a tenant's audit log as signed NDJSON, which `verify_audit` verifies offline."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("tenant", metavar="TENANT", help="slug of the tenant")
        parser.add_argument(
            "--from", dest="since", type=_read_moment, help="start of the period, in UTC"
        )
        parser.add_argument(
            "--to", dest="until", type=_read_moment, help="end of the period, exclusive"
        )
        parser.add_argument("--out", type=Path, required=True, metavar="FILE")
        parser.add_argument("--reason", default="", help="reason for the audit log")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant_id = find_tenant(slug=options["tenant"])
        if tenant_id is None:
            raise CommandError(f"There is no tenant {options['tenant']}.")
        period = AuditExportPeriod(options["since"], options["until"])
        try:
            reason = parse_reason(options["reason"])
            chain_range = _write_export(
                build_system_actor(tenant_id), period, options["out"], reason
            )
        except DomainError as error:
            raise CommandError(error.message) from error
        except OSError as error:
            raise CommandError(f"Cannot write {options['out']}: {error.strerror}.") from error
        self.stdout.write(
            f"{chain_range.num_entries} entries; the newest entry of the chain is number"
            f" {chain_range.head.sequence}."
        )


def _write_export(actor: Actor, period: AuditExportPeriod, path: Path, reason: str) -> ChainRange:
    """Write the file under a temporary name, and rename it at the end.

    Only the owner of the file can read it.
    """
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as out:
        try:
            chain_range = write_export(
                actor=actor,
                period=period,
                out=out.file,
                keys=load_signing_keys(),
                now=timezone.now(),
                reason=reason,
            )
        except BaseException:
            Path(out.name).unlink()
            raise
    Path(out.name).replace(path)
    return chain_range


def _read_moment(text: str) -> datetime:
    """Return a time in UTC. A date means its midnight, and a time without a zone is in UTC."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError("write 2026-11-01 or 2026-11-01T12:00:00Z") from None
