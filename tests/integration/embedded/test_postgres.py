"""The embedded Postgres server: it keeps data after a crash, and lets only its own roles in."""

import os
import subprocess
from pathlib import Path

import psycopg
import pytest

from caret.local.databases.postgres import EmbeddedPostgres
from caret.local.databases.postgres_user import PostgresUser, choose_user
from caret.local.paths import EmbeddedPaths


@pytest.fixture
def paths(tmp_path: Path) -> EmbeddedPaths:
    return EmbeddedPaths(tmp_path / "home")


def _connect_as_owner(paths: EmbeddedPaths) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(paths.owner_database_url.read_text().strip())


def _require_user_namespaces() -> None:
    """Skip the test on a machine that allows no user namespaces."""
    if choose_user() is not PostgresUser.NAMESPACE:
        pytest.skip("this machine allows no user namespaces")


def test_committed_data_survives_a_kill_of_the_server(paths: EmbeddedPaths) -> None:
    with EmbeddedPostgres(paths) as postgres:
        with _connect_as_owner(paths) as owner:
            owner.execute("CREATE TABLE kept (id int)")
            owner.execute("INSERT INTO kept SELECT generate_series(1, 1000)")
        postgres.child.kill()

    with EmbeddedPostgres(paths), _connect_as_owner(paths) as owner:
        assert owner.execute("SELECT count(*) FROM kept").fetchone() == (1000,)


def test_a_stale_pid_of_another_program_does_not_prevent_the_start(paths: EmbeddedPaths) -> None:
    with EmbeddedPostgres(paths) as postgres:
        pid_file = paths.home / "postgres" / "postmaster.pid"
        lines = pid_file.read_text().splitlines()
        postgres.child.kill()
    # As after a restart of the machine: the process ID belongs to another program.
    with subprocess.Popen(["sleep", "600"]) as other_program:
        try:
            # The first line of the file is the process ID.
            pid_file.write_text("\n".join([str(other_program.pid), *lines[1:]]) + "\n")

            with EmbeddedPostgres(paths), _connect_as_owner(paths) as owner:
                assert owner.execute("SELECT 1").fetchone() == (1,)
        finally:
            other_program.kill()


def test_an_interrupted_initialisation_is_repeated(paths: EmbeddedPaths) -> None:
    unfinished = paths.home / "postgres.new"
    unfinished.mkdir(parents=True)
    (unfinished / "PG_VERSION").write_text("18\n")

    with EmbeddedPostgres(paths), _connect_as_owner(paths) as owner:
        assert owner.execute("SELECT 1").fetchone() == (1,)

    assert not unfinished.exists()


def test_the_application_roles_privileges_are_reset_at_the_next_start(
    paths: EmbeddedPaths,
) -> None:
    password_file = paths.secrets / "password-caret_superuser"
    with (
        EmbeddedPostgres(paths),
        psycopg.connect(
            host=str(paths.sockets),
            dbname="postgres",
            user="caret_superuser",
            password=password_file.read_text().strip(),
            autocommit=True,
        ) as connection,
    ):
        connection.execute("ALTER ROLE caret_app BYPASSRLS CREATEDB PASSWORD 'changed'")

    app_url = paths.app_database_url
    with EmbeddedPostgres(paths), psycopg.connect(app_url.read_text().strip()) as app:
        privileges = app.execute(
            "SELECT rolbypassrls, rolcreatedb FROM pg_roles WHERE rolname = current_user"
        ).fetchone()

    assert privileges == (False, False)


def test_a_connection_without_a_password_is_refused(paths: EmbeddedPaths) -> None:
    with (
        EmbeddedPostgres(paths),
        pytest.raises(psycopg.OperationalError, match="password"),
    ):
        # No password file, so that libpq does not read one of this machine's user.
        psycopg.connect(host=str(paths.sockets), dbname="caret", user="caret_app", passfile="/none")


def test_postgres_listens_on_no_tcp_port(paths: EmbeddedPaths) -> None:
    with EmbeddedPostgres(paths), _connect_as_owner(paths) as owner:
        assert owner.execute("SHOW listen_addresses").fetchone() == ("",)


@pytest.mark.skipif(os.getuid() != 0, reason="only root must switch to another user")
@pytest.mark.parametrize("user", [PostgresUser.NAMESPACE, PostgresUser.CAPABILITY])
def test_root_can_run_postgres_as_either_user(paths: EmbeddedPaths, user: PostgresUser) -> None:
    """Postgres refuses to run as root, so root starts it as another user: see `PostgresUser`."""
    if user is PostgresUser.NAMESPACE:
        _require_user_namespaces()

    with EmbeddedPostgres(paths, user=user), _connect_as_owner(paths) as owner:
        assert owner.execute("SELECT 1").fetchone() == (1,)


@pytest.mark.skipif(os.getuid() != 0, reason="only root must switch to another user")
def test_data_survives_a_change_of_the_postgres_user(paths: EmbeddedPaths) -> None:
    _require_user_namespaces()
    with EmbeddedPostgres(paths, user=PostgresUser.NAMESPACE), _connect_as_owner(paths) as owner:
        owner.execute("CREATE TABLE kept AS SELECT 7 AS id")

    for user in [PostgresUser.CAPABILITY, PostgresUser.NAMESPACE] * 2:
        with EmbeddedPostgres(paths, user=user), _connect_as_owner(paths) as owner:
            assert owner.execute("SELECT id FROM kept").fetchone() == (7,)
