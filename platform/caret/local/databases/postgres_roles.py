"""Creates or updates the database and two of its three roles at every start.

* caret_superuser  created with the data directory; used only by this module and for backups
* caret_owner      owns the database and its tables, but is bound by row-level security
* caret_app        owns nothing and can create nothing; a migration that creates a table grants this
                   role access to it, as in production: there are no default privileges

This module also installs the extension `vector`, which only a superuser can do.
"""

import psycopg
from psycopg import sql

from caret.local.databases.credentials import (
    APP_ROLE,
    DATABASE,
    OWNER_ROLE,
    SUPERUSER,
    read_password,
)
from caret.local.paths import EmbeddedPaths

_RESTRICTED_RIGHTS = sql.SQL("LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE NOREPLICATION")
_CONNECT_TIMEOUT_S = 5


def reconcile_roles(paths: EmbeddedPaths) -> None:
    """Create what is missing, and set passwords and rights as they should be."""
    with _open_connection(paths, "postgres") as connection:
        for role in (OWNER_ROLE, APP_ROLE):
            _reconcile_role(connection, role=role, password=read_password(paths, role))
        _ensure_database(connection)
    with _open_connection(paths, DATABASE) as connection:
        _set_up_database(connection)


def accepts_connections(paths: EmbeddedPaths) -> bool:
    """Return whether the server accepts connections; False while it starts or recovers.

    Raises psycopg.OperationalError for a wrong password.
    """
    try:
        _open_connection(paths, "postgres").close()
    except psycopg.OperationalError as error:
        if "password authentication failed" in str(error):
            raise
        return False
    return True


def _open_connection(paths: EmbeddedPaths, database: str) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(
        host=str(paths.sockets),
        dbname=database,
        user=SUPERUSER,
        password=read_password(paths, SUPERUSER),
        connect_timeout=_CONNECT_TIMEOUT_S,
        autocommit=True,
    )


def _reconcile_role(
    connection: psycopg.Connection[tuple[object, ...]], *, role: str, password: str
) -> None:
    existing_role = connection.execute(
        "SELECT 1 FROM pg_roles WHERE rolname = %s", [role]
    ).fetchone()
    # Hashed here, so that the server cannot log the password.
    verifier = connection.pgconn.encrypt_password(
        password.encode(), role.encode(), b"scram-sha-256"
    ).decode()
    connection.execute(
        sql.SQL("{verb} ROLE {role} {rights} PASSWORD {verifier}").format(
            verb=sql.SQL("ALTER" if existing_role else "CREATE"),
            role=sql.Identifier(role),
            rights=_RESTRICTED_RIGHTS,
            verifier=sql.Literal(verifier),
        )
    )


def _ensure_database(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    rows = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
    if rows.fetchone() is None:
        connection.execute(
            sql.SQL("CREATE DATABASE {} OWNER {}").format(
                sql.Identifier(DATABASE), sql.Identifier(OWNER_ROLE)
            )
        )


def _set_up_database(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    """Grant the roles their rights on the database, and install the extension."""
    names = {
        "database": sql.Identifier(DATABASE),
        "owner": sql.Identifier(OWNER_ROLE),
        "app": sql.Identifier(APP_ROLE),
    }
    for statement in (
        "REVOKE ALL ON DATABASE {database} FROM PUBLIC",
        "GRANT CONNECT ON DATABASE {database} TO {app}",
        "ALTER SCHEMA public OWNER TO {owner}",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
        "GRANT USAGE ON SCHEMA public TO {app}",
        "CREATE EXTENSION IF NOT EXISTS vector SCHEMA public",
    ):
        connection.execute(sql.SQL(statement).format(**names))
