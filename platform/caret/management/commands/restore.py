"""`manage.py restore --data FILE [--keys FILE]`: see platform/docs/backup.md."""

import argparse
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from caret.embedded.backup_server import backup_server
from caret.foundation.postgres.dump import DumpFailed, is_empty, restore
from tenants.encryption.destroyed import destroy_again


class Command(BaseCommand):
    help = "Restores a backup into an empty database, and destroys again what was destroyed since."
    requires_system_checks: list[str] = []  # noqa: RUF012  # it may mend what they find

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, required=True)
        parser.add_argument("--keys", type=Path, help="without, nothing sealed opens")

    def handle(self, *args: Any, **options: Any) -> None:
        server = backup_server(settings.EMBEDDED)
        if not is_empty(server):
            raise CommandError("The database has tables: restore into an empty one.")
        try:
            restore(server, options["data"])
            if options["keys"] is not None:
                restore(server, options["keys"])
        except DumpFailed as error:
            raise CommandError(f"It was not restored: {error}") from error
        # Before anything is started: a key from the backup may be one that was shredded since.
        num_keys = destroy_again(now=timezone.now())
        self.stdout.write(f"Restored. {num_keys} keys were destroyed again.")
