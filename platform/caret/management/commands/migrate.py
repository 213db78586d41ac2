"""`manage.py migrate --database owner`: Django's command with a short lock timeout and retries.

See caret.foundation.postgres.lock_retry.
"""

from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from django.core.management.commands.migrate import Command as DjangoMigrateCommand
from django.db import connections
from django.db.migrations.recorder import MigrationRecorder

from caret.foundation.postgres.lock_retry import LockRetryPolicy, run_with_lock_retry

_PAUSE_S: Final = 2.0
# Release 0.1.0 replaced all earlier migrations with one initial migration. A database that has
# applied one of the earlier migrations, such as this one, is older than that release.
_REPLACED_MIGRATION: Final = ("tenants", "0002_usage")


class Command(DjangoMigrateCommand):
    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--lock-timeout-s",
            type=int,
            default=3,
            help="seconds that a statement waits for a lock",
        )
        parser.add_argument(
            "--statement-timeout-s", type=int, default=900, help="seconds that a statement may run"
        )
        parser.add_argument(
            "--tries", type=int, default=20, help="attempts at a migration that gets no lock"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        connection = connections[options["database"]]
        if _REPLACED_MIGRATION in MigrationRecorder(connection).applied_migrations():
            raise CommandError(
                "The database was made by a version before 0.1.0, which cannot be upgraded. To keep"
                " its data, stay with that version. Otherwise use an empty database: `make up`"
                " creates one after you remove or rename the folder .caret (or CARET_HOME)."
            )
        policy = LockRetryPolicy(
            lock_timeout_s=options["lock_timeout_s"],
            statement_timeout_s=options["statement_timeout_s"],
            max_tries=options["tries"],
            pause_s=_PAUSE_S,
        )
        # A migration that gets no lock is rolled back. A new try continues with it, because the
        # migrations before it are recorded as applied.
        handle = super().handle
        run_with_lock_retry(connection, lambda: handle(*args, **options), policy=policy)
