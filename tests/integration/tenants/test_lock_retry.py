"""Migrations stop waiting for a lock that they do not get, and try again."""

from collections.abc import Callable, Iterator

import psycopg
import pytest
from django.core.management import call_command
from django.db import OperationalError, connections

from caret.foundation.postgres.lock_retry import LockRetryPolicy, run_with_lock_retry
from tests.stack.services import Services

BRIEF = LockRetryPolicy(lock_s=1, statement_s=2, max_tries=3, pause_s=0.0)


@pytest.fixture
def reader(services: Services) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Hold a table with a long read, as a report does."""
    with psycopg.connect(services.owner_database_url) as reading:
        with connections["owner"].cursor() as cursor:
            cursor.execute("CREATE TABLE held (id int)")
        reading.execute("SELECT * FROM held")
        try:
            yield reading
        finally:
            reading.rollback()
            with connections["owner"].cursor() as cursor:
                cursor.execute("DROP TABLE held")


def alter() -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute("ALTER TABLE held ADD COLUMN note text")


def test_it_comes_back_once_the_reader_has_left(
    reader: psycopg.Connection[tuple[object, ...]],
) -> None:
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        reader.rollback()

    run_with_lock_retry(connections["owner"], alter, patience=BRIEF, pause=pause)

    assert pauses == [0.0]


def test_it_does_not_come_back_for_ever(reader: psycopg.Connection[tuple[object, ...]]) -> None:
    pauses: list[float] = []

    with pytest.raises(OperationalError, match="lock timeout"):
        run_with_lock_retry(connections["owner"], alter, patience=BRIEF, pause=pauses.append)

    assert len(pauses) == BRIEF.max_tries - 1


@pytest.mark.parametrize("work", [lambda: run("SELECT pg_sleep(9)"), lambda: run("SELECT nothing")])
def test_what_is_no_lock_is_not_tried_again(work: Callable[[], None]) -> None:
    with pytest.raises(Exception, match=r"statement timeout|nothing"):
        run_with_lock_retry(connections["owner"], work, patience=BRIEF, pause=_never)


def test_afterwards_the_connection_is_as_its_role_has_it() -> None:
    run("ALTER ROLE caret_owner SET lock_timeout = '7s'")
    connections["owner"].close()

    try:
        run_with_lock_retry(connections["owner"], lambda: None, patience=BRIEF)
    finally:
        run("ALTER ROLE caret_owner RESET lock_timeout")

    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('lock_timeout'), current_setting('statement_timeout')"
        )
        assert cursor.fetchone() == ("7s", "0")


def test_migrate_has_these_limits(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("migrate", database="owner", lock_timeout_s=4, tries=1)

    assert "No migrations to apply." in capsys.readouterr().out


def _never(seconds: float) -> None:
    raise AssertionError("it must not be tried again")


def run(statement: str) -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute(statement)
