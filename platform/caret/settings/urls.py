"""Database addresses as libpq writes them, turned into Django's settings."""

from typing import Any

from psycopg.conninfo import conninfo_to_dict

from caret.foundation.environment import BadSetting


def database_from_url(url: str) -> dict[str, Any]:
    """Django's DATABASES entry for `postgresql://user:password@host/name?option=value`.

    Raises BadSetting; never repeats the address, which holds a password.
    """
    try:
        parts: dict[str, Any] = conninfo_to_dict(url)
    except Exception as error:  # noqa: BLE001  # psycopg's ProgrammingError quotes the address
        raise BadSetting(
            "A database address is malformed; see DATABASE_URL."
        ) from error.with_traceback(None)
    if "dbname" not in parts:
        raise BadSetting("A database address names no database; see DATABASE_URL.")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.pop("dbname"),
        "USER": parts.pop("user", ""),
        "PASSWORD": parts.pop("password", ""),
        "HOST": parts.pop("host", ""),
        "PORT": parts.pop("port", ""),
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": parts,
    }
