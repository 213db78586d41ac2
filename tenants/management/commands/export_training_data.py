"""`manage.py export_training_data TENANT --out FILE`: see platform/docs/content-capture.md."""

import argparse
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.privacy.content_capture.training_export import export_training_data
from tenants.security.authorization.actor import build_system_actor
from tenants.security.authorization.directory import find_tenant
from tenants.security.encryption.errors import EncryptionFailed


class Command(NoSystemChecksCommand):
    help = "Write the captured content whose users consent to training, as NDJSON."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("tenant", metavar="TENANT", help="slug of the tenant")
        parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="a new file")

    def handle(self, *args: Any, **options: Any) -> None:
        tenant_id = find_tenant(slug=options["tenant"])
        if tenant_id is None:
            raise CommandError(f"There is no tenant {options['tenant']}.")
        lines = export_training_data(actor=build_system_actor(tenant_id), now=timezone.now())
        try:
            num_lines = _write_lines(lines, options["out"])
        except (OSError, EncryptionFailed) as error:
            raise CommandError(f"Nothing was written: {error}") from error
        self.stdout.write(f"{num_lines} lines in {options['out']}")


def _write_lines(lines: Iterator[bytes], out: Path) -> int:
    """Create a new file, and return the number of lines. Raises FileExistsError.

    The file gets its name when it is complete. Only the owner of the file can read it.
    """
    with tempfile.NamedTemporaryFile(dir=out.parent, prefix=f".{out.name}.") as draft:
        num_lines = 0
        for line in lines:
            draft.write(line)
            num_lines += 1
        draft.flush()
        os.link(draft.name, out)
    return num_lines
