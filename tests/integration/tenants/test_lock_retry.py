"""Migrations give up waiting for a lock after a time limit, and try again.

`migrate` accepts these limits, and refuses the database of an unreleased version.
"""

from collections.abc import Iterator

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, OperationalError, connections
from django.db.migrations.recorder import MigrationRecorder

from caret.foundation.postgres.lock_retry import LockRetryPolicy, run_with_lock_retry
from tests.stack.services import Services

SHORT_POLICY = LockRetryPolicy(lock_timeout_s=1, statement_timeout_s=2, max_tries=3, pause_s=0.0)


@pytest.fixture
def reader(services: Services) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Keep a table locked by an open read transaction, as a long report does."""
    with psycopg.connect(services.owner_database_url) as connection:
        with connections["owner"].cursor() as cursor:
            cursor.execute("CREATE TABLE locked_table (id int)")
        connection.execute("SELECT * FROM locked_table")
        try:
            yield connection
        finally:
            connection.rollback()
            with connections["owner"].cursor() as cursor:
                cursor.execute("DROP TABLE locked_table")


def alter_table() -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute("ALTER TABLE locked_table ADD COLUMN note text")


def test_a_migration_succeeds_after_the_lock_is_released(
    reader: psycopg.Connection[tuple[object, ...]],
) -> None:
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        reader.rollback()  # releases the lock

    run_with_lock_retry(connections["owner"], alter_table, policy=SHORT_POLICY, pause=pause)

    assert pauses == [0.0]
    run("SELECT note FROM locked_table")  # the column exists


def test_a_migration_gives_up_after_the_maximum_number_of_tries(
    reader: psycopg.Connection[tuple[object, ...]],
) -> None:
    pauses: list[float] = []

    with pytest.raises(OperationalError, match="lock timeout"):
        run_with_lock_retry(
            connections["owner"], alter_table, policy=SHORT_POLICY, pause=pauses.append
        )

    assert len(pauses) == SHORT_POLICY.max_tries - 1


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("SELECT pg_sleep(9)", "statement timeout"),
        ("SELECT nothing", 'column "nothing" does not exist'),
    ],
)
def test_other_errors_are_not_retried(statement: str, error: str) -> None:
    with pytest.raises(DatabaseError, match=error):
        run_with_lock_retry(
            connections["owner"],
            lambda: run(statement),
            policy=SHORT_POLICY,
            pause=_fail_if_retried,
        )


def test_a_lost_connection_is_reported_by_its_own_error() -> None:
    try:
        with pytest.raises(OperationalError, match="terminating connection"):
            run_with_lock_retry(
                connections["owner"],
                lambda: run("SELECT pg_terminate_backend(pg_backend_pid())"),
                policy=SHORT_POLICY,
            )
    finally:
        connections["owner"].close()  # later tests get a new connection


def test_the_roles_timeouts_are_restored_afterwards() -> None:
    run("ALTER ROLE caret_owner SET lock_timeout = '7s'")
    connections["owner"].close()  # the role's setting applies to new connections

    try:
        run_with_lock_retry(connections["owner"], lambda: None, policy=SHORT_POLICY)
    finally:
        run("ALTER ROLE caret_owner RESET lock_timeout")

    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('lock_timeout'), current_setting('statement_timeout')"
        )
        assert cursor.fetchone() == ("7s", "0")


def test_the_migrate_command_accepts_the_limits(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("migrate", database="owner", lock_timeout_s=4, tries=1)

    assert "No migrations to apply." in capsys.readouterr().out


def _fail_if_retried(seconds: float) -> None:
    raise AssertionError("only a lock timeout may be retried")


def run(statement: str) -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute(statement)


def test_a_database_of_an_unreleased_version_is_not_migrated(services: Services) -> None:
    recorder = MigrationRecorder(connections["owner"])
    # Release 0.1.0 replaced this migration and others by one initial migration.
    recorder.record_applied("tenants", "0002_usage")
    try:
        with pytest.raises(CommandError, match=r"before 0\.1\.0"):
            call_command("migrate", database="owner", verbosity=0)
    finally:
        recorder.record_unapplied("tenants", "0002_usage")
