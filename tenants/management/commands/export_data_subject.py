"""`manage.py export_data_subject TENANT PERSON --reason WHY --out FILE`.

See platform/docs/retention.md.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import redis
from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError
from tenants.compliance.data_subjects.export_bundle import BundleRequest, write_bundle
from tenants.compliance.data_subjects.queries import find_user_id
from tenants.security.authorization.actor import Actor, build_system_actor
from tenants.security.authorization.directory import find_tenant
from tenants.security.encryption.errors import EncryptionFailed


class Command(NoSystemChecksCommand):
    help = "Write all personal data of a user in a tenant to a signed ZIP of NDJSON files."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("tenant", metavar="TENANT", help="slug of the tenant")
        parser.add_argument("person", metavar="PERSON", help="an e-mail address or a user ID")
        parser.add_argument("--reason", required=True, help="reason for the audit log")
        parser.add_argument("--out", type=Path, required=True, metavar="FILE")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant_id = find_tenant(slug=options["tenant"])
        if tenant_id is None:
            raise CommandError(f"There is no tenant {options['tenant']}.")
        try:
            bundle_request = BundleRequest(find_user_id(options["person"]), options["reason"])
            manifest = _write_bundle(build_system_actor(tenant_id), bundle_request, options["out"])
        except DomainError as error:
            raise CommandError(error.message) from error
        except (OSError, redis.RedisError, EncryptionFailed) as error:
            raise CommandError(f"Nothing was written: {error}") from error
        num_rows = sum(file["rows"] for file in manifest["files"])
        self.stdout.write(f"{num_rows} rows in {options['out']}")


def _write_bundle(actor: Actor, bundle_request: BundleRequest, path: Path) -> dict[str, Any]:
    """Write the file under a temporary name, rename it at the end, and return its manifest.

    Only the owner of the file can read it.
    """
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as out:
        try:
            manifest = write_bundle(
                actor=actor, bundle_request=bundle_request, out=out.file, now=timezone.now()
            )
        except BaseException:
            Path(out.name).unlink()
            raise
    Path(out.name).replace(path)
    return manifest
