"""`manage.py backup --data FILE --keys FILE`: see platform/docs/backup.md."""

import argparse
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from caret.foundation.management_command import NoSystemChecksCommand
from caret.foundation.postgres.backup import DumpFailed, dump_data, dump_keys
from caret.local.databases.backup_target import choose_backup_server


class Command(NoSystemChecksCommand):
    help = "Write the data to one file, and the encryption keys that decrypt it to another."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, required=True, help="new file for the data")
        parser.add_argument(
            "--keys",
            type=Path,
            required=True,
            help="new file for the encryption keys, in another folder",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        data, keys = options["data"].resolve(), options["keys"].resolve()
        if data.parent == keys.parent:
            raise CommandError(
                "Write --keys to another folder than --data, so that nobody finds both together."
            )
        server = choose_backup_server(settings.EMBEDDED)
        try:
            dump_data(server, data)
            try:
                dump_keys(server, keys)
            except BaseException:
                data.unlink()  # without the keys, nobody could decrypt it
                raise
        except (DumpFailed, OSError) as error:
            raise CommandError(f"No backup was made: {error}") from error
        self.stdout.write(
            f"{data}: {data.stat().st_size:,} bytes\n{keys}: store this file in another place"
        )
