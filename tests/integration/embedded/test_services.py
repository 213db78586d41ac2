"""The tests use the database through the same weak role as production: `caret_app`."""

import psycopg
import pytest
from django.db import connection
from psycopg import errors

from tests.stack.services import Services


@pytest.mark.django_db
def test_django_is_connected_as_the_weak_role() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT rolname, rolsuper, rolbypassrls, rolcreatedb, rolcreaterole"
            " FROM pg_roles WHERE rolname = current_user"
        )
        row = cursor.fetchone()

    assert row == ("caret_app", False, False, False, False)


def test_the_weak_role_owns_no_relation(services: Services) -> None:
    with psycopg.connect(services.database_url) as weak:
        num_owned = weak.execute(
            "SELECT count(*) FROM pg_class WHERE pg_get_userbyid(relowner) = current_user"
        ).fetchone()

    assert num_owned == (0,)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE intruder (id int)",
        "CREATE SCHEMA intruder",
        "CREATE TEMPORARY TABLE intruder (id int)",
        "CREATE DATABASE intruder",
        "CREATE ROLE intruder",
        "SET ROLE caret_owner",
        "SET SESSION AUTHORIZATION caret_superuser",
        # Rights on a table come from the migration that creates it, never by default.
        "SELECT * FROM made_by_the_owner",
        "INSERT INTO made_by_the_owner DEFAULT VALUES",
        "TRUNCATE made_by_the_owner",
        "DROP TABLE made_by_the_owner",
        "ALTER TABLE made_by_the_owner DISABLE ROW LEVEL SECURITY",
    ],
)
@pytest.mark.usefixtures("table_of_the_owner")
def test_the_weak_role_is_denied_privileged_statements(services: Services, statement: str) -> None:
    with (
        psycopg.connect(services.database_url, autocommit=True) as weak,
        pytest.raises(errors.InsufficientPrivilege),
    ):
        weak.execute(statement.encode())


def test_the_owner_role_cannot_bypass_row_security(services: Services) -> None:
    with psycopg.connect(services.owner_database_url) as owner:
        bypasses = owner.execute(
            "SELECT rolbypassrls OR rolsuper FROM pg_roles WHERE rolname = current_user"
        ).fetchone()

    assert bypasses == (False,)
