"""`manage.py restore --data FILE [--keys FILE]`: see platform/docs/backup.md."""

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connections

from caret.foundation.management_command import NoSystemChecksCommand
from caret.foundation.postgres.backup import (
    WHICH_DATABASE,
    DumpFailed,
    PostgresServer,
    identify_database,
    is_empty,
    restore,
)
from caret.local.databases.backup_target import choose_backup_server
from tenants.base.tombstones import WrongStore, require_store

_KEYS_NOT_RESTORED: Final = (
    "The data was restored, but not the encryption keys: {error}. Empty the database, and restore"
    " both again."
)
_ERASURES_NOT_REPEATED: Final = (
    "Restored, but encryption keys and users that were erased since the backup may exist again"
    " ({error}). Before you start any process of Caret, run `manage.py migrate --database owner`,"
    " then `manage.py replay_erasures`."
)
_LOST_CHANGES: Final = (
    "All changes after the backup's last audit entry ({since}) are lost, legal holds included."
    " Place or release those holds again before you start the worker: it deletes data that no hold"
    " protects."
)
_NO_ENTRY: Final = "none"  # in place of {since}, if the backup has no audit entry


class Command(NoSystemChecksCommand):
    help = "Restore a backup into an empty database, and repeat the erasures since the backup."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, required=True, help="file of the data")
        parser.add_argument(
            "--keys",
            type=Path,
            help="file of the encryption keys; without it, encrypted data stays unreadable",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        server = choose_backup_server(settings.EMBEDDED)
        _require_usable(server)
        try:
            restore(server, options["data"])
        except (DumpFailed, OSError) as error:
            raise CommandError(f"The backup was not restored: {error}") from error
        try:
            if options["keys"] is not None:
                restore(server, options["keys"])
        except (DumpFailed, OSError) as error:
            raise CommandError(_KEYS_NOT_RESTORED.format(error=error)) from error
        self.stdout.write("Restored.")
        # Read now, because replay_erasures adds newer audit entries.
        last_at = _read_newest_entry_at(server)
        self.stdout.write(
            _LOST_CHANGES.format(since=_NO_ENTRY if last_at is None else _format_moment(last_at))
        )
        try:
            call_command("replay_erasures", stdout=self.stdout)
        except Exception as error:
            raise CommandError(_ERASURES_NOT_REPEATED.format(error=error)) from error


def _require_usable(server: PostgresServer) -> None:
    """Check the database and the tombstone store before anything is changed.

    The database must be empty, and both database URLs must name it. Raises CommandError.
    """
    if not is_empty(server):
        raise CommandError("The database is not empty. Restore into an empty one.")
    with connections["default"].cursor() as cursor:
        cursor.execute(WHICH_DATABASE)
        own_database = cursor.fetchone()
    if identify_database(server) != own_database:
        raise CommandError(
            "DATABASE_URL names another database than CARET_BACKUP_DATABASE_URL. Set both to the"
            " database that you restore."
        )
    try:
        require_store()
    except WrongStore as error:
        raise CommandError(str(error)) from error


def _read_newest_entry_at(server: PostgresServer) -> datetime | None:
    """Return the time of the newest audit entry of all tenants; None if there is no entry."""
    with psycopg.connect(server.address) as connection:
        row = connection.execute("SELECT max(at) FROM tenants_auditentry").fetchone()
    last_at: datetime | None = None if row is None else row[0]
    return last_at


def _format_moment(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
