"""Processes do not start with a database role that bypasses row-level security."""

import os
import secrets
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from django.db.utils import ConnectionHandler

from caret.foundation.postgres.roles import (
    check_bound_role,
    find_rls_bypasses,
    require_rls_bound_role,
)
from caret.local.databases.credentials import DATABASE, SUPERUSER, read_password
from tests.stack.services import Services

ROOT = Path(__file__).resolve().parents[3]


def test_the_application_role_cannot_bypass_row_security() -> None:
    require_rls_bound_role()

    assert find_rls_bypasses(connection) == []
    assert check_bound_role(databases=["default"]) == []


@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, "manage.py", "console"],
        [sys.executable, "-m", "celery", "-A", "caret.celery", "worker", "--pool", "solo"],
        [sys.executable, "manage.py", "check", "--database", "default"],
    ],
)
def test_a_process_does_not_start_as_the_tables_owner(
    services: Services, command: list[str]
) -> None:
    environment = {
        **os.environ,
        "DATABASE_URL": services.owner_database_url,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "platform")]),
    }

    process = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False
    )

    assert process.returncode != 0
    assert "caret_owner owns tables" in process.stderr


# Options of CREATE ROLE, and the reason that is found for each of them.
BYPASS_REASONS = {
    "BYPASSRLS IN ROLE caret_app": "has BYPASSRLS",
    "SUPERUSER": "is a superuser",
    "IN ROLE caret_owner": "caret_owner owns tables",
}


@pytest.mark.parametrize("role_options", BYPASS_REASONS)
def test_each_way_to_bypass_row_security_is_detected(services: Services, role_options: str) -> None:
    role = f"caret_strong_{secrets.token_hex(4)}"
    password = read_password(services.paths, SUPERUSER)
    with psycopg.connect(
        host=str(services.paths.sockets),
        dbname=DATABASE,
        user=SUPERUSER,
        password=password,
        autocommit=True,
    ) as superuser:
        # All parts of this statement come from this test.
        superuser.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'x' {role_options}".encode())
        role_connection = ConnectionHandler(
            {"default": settings.DATABASES["default"] | {"USER": role, "PASSWORD": "x"}}
        )["default"]
        try:
            reasons = find_rls_bypasses(role_connection)
        finally:
            role_connection.close()
            superuser.execute(f"DROP ROLE {role}".encode())

    assert BYPASS_REASONS[role_options] in "; ".join(reasons)


def test_the_application_role_is_not_a_member_of_the_owner(services: Services) -> None:
    """A role that can become the owner could disable row-level security."""
    with psycopg.connect(services.owner_database_url) as owner, owner.cursor() as cursor:
        cursor.execute("SELECT pg_has_role('caret_app', 'caret_owner', 'MEMBER')")
        row = cursor.fetchone()

    assert row == (False,)
