"""`manage.py backup --data FILE --keys FILE`: see platform/docs/backup.md."""

import argparse
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from caret.foundation.management_command import NoSystemChecksCommand
from caret.foundation.postgres.backup import DumpFailed, dump_data, dump_keys
from caret.local.backup_target import backup_server


class Command(NoSystemChecksCommand):
    help = "Writes all data into one file and the keys that open it into another."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, required=True, help="a file that is made")
        parser.add_argument("--keys", type=Path, required=True, help="one elsewhere, for less long")

    def handle(self, *args: Any, **options: Any) -> None:
        data, keys = options["data"].resolve(), options["keys"].resolve()
        if data.parent == keys.parent:
            raise CommandError("Who finds one would find both: give the keys a folder elsewhere.")
        server = backup_server(settings.EMBEDDED)
        try:
            dump_data(server, data)
            dump_keys(server, keys)
        except (DumpFailed, OSError) as error:
            raise CommandError(f"No backup was made: {error}") from error
        self.stdout.write(f"{data}: {data.stat().st_size:,} bytes\n{keys}: keep it elsewhere")
