"""Selects the database to back up or restore.

It is CARET_BACKUP_DATABASE_URL, or the local installation's database.
"""

from urllib.parse import quote

from caret.foundation.environment import BadSetting, env_optional_secret
from caret.foundation.postgres.backup import PostgresServer
from caret.local.databases.credentials import DATABASE, SUPERUSER, read_password
from caret.local.databases.postgres_cluster import find_postgres_programs
from caret.local.paths import EmbeddedPaths


def choose_backup_server(paths: EmbeddedPaths) -> PostgresServer:
    """Return the server of the database to back up or restore.

    Raises BadSetting, MissingFeature.
    """
    url = env_optional_secret(
        "CARET_BACKUP_DATABASE_URL", default_file=paths.secrets / "backup-database-url"
    )
    if url is not None:
        return PostgresServer(url, programs=None)  # None: the programs on the PATH
    host = quote(str(paths.sockets), safe="")
    try:
        password = read_password(paths, SUPERUSER)
        programs = find_postgres_programs(paths)
    except FileNotFoundError as error:
        raise BadSetting(
            f"CARET_BACKUP_DATABASE_URL is not set, and {paths.home} has no database."
        ) from error
    local_url = f"postgresql://{SUPERUSER}:{password}@/{DATABASE}?host={host}"
    return PostgresServer(local_url, programs=programs)
