"""Converts the URLs of other services, and the paths of storage folders, into Django's settings."""

from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from psycopg.conninfo import conninfo_to_dict

from caret.foundation.environment import BadSetting, env_int, env_list

# Default ports. A connection to 587 changes to TLS by STARTTLS; 465 has TLS from the start.
_MAIL_PORTS: Final = {"smtp": 587, "smtps": 465}
_MAIL_TIMEOUT_S: Final = 10


def mail_from_url(url: str) -> dict[str, Any]:
    """Return Django's EMAIL_* settings for `smtp://user:password@host:port` or `smtps://...`.

    Both use TLS. Raises BadSetting, which never quotes the URL because it contains a password.
    """
    try:
        parts = urlsplit(url)
        default_port = _MAIL_PORTS[parts.scheme]
        port = parts.port or default_port
    except (ValueError, KeyError):  # the text of ValueError may quote the URL
        raise BadSetting(
            "CARET_SMTP_URL must begin with smtp:// or smtps://, and its port must be a number."
        ) from None
    if not parts.hostname:
        raise BadSetting("CARET_SMTP_URL has no host.")
    return {
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": port,
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_TLS": parts.scheme == "smtp",
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_TIMEOUT": _MAIL_TIMEOUT_S,
    }


def gateway_metrics_from_environment() -> list[str]:
    """Return the URLs of the gateways' metrics, by default the URL of the gateway on this machine.

    That gateway serves no metrics if CARET_METRICS_PORT is 0. The default is then no URL. Raises
    BadSetting.
    """
    port = env_int("CARET_METRICS_PORT", 8403, low=0, high=65_535)
    return env_list("CARET_GATEWAY_METRICS_URLS", f"http://127.0.0.1:{port}" if port else "")


def database_from_url(url: str) -> dict[str, Any]:
    """Return Django's DATABASES entry for a URL in libpq's format.

    The format is `postgresql://user:password@host:port/database?option=value`. Raises BadSetting,
    which never quotes the URL because it contains a password.
    """
    try:
        parts: dict[str, Any] = conninfo_to_dict(url)
    except Exception:  # noqa: BLE001  # psycopg's ProgrammingError quotes the URL
        raise BadSetting("The URL of a database (DATABASE_URL or similar) is malformed.") from None
    if "dbname" not in parts:
        raise BadSetting("The URL of a database (DATABASE_URL or similar) names no database.")
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


def storage_from(setting: str, text: str) -> dict[str, Any]:
    """Return Django's STORAGES entry for `text`: an absolute path or `s3://BUCKET/PREFIX`.

    `setting` is the name of the environment variable that has the text. boto3 reads the region, the
    credentials and the endpoint (for other providers than AWS) from variables of its own, such as
    AWS_REGION and AWS_ENDPOINT_URL_S3. Raises BadSetting.
    """
    if not text.startswith("s3://"):
        return _storage_in_folder(setting, text)
    bucket, _, prefix = text.removeprefix("s3://").partition("/")
    if not bucket:
        raise BadSetting(f"{setting} names no bucket; write s3://BUCKET/PREFIX.")
    return {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {"bucket_name": bucket, "location": prefix.strip("/"), "default_acl": None},
    }


def _storage_in_folder(setting: str, text: str) -> dict[str, Any]:
    if not Path(text).is_absolute():
        raise BadSetting(
            f"{setting} is {text!r}; write the absolute path of a folder or s3://BUCKET/PREFIX."
        )
    return {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {
            "location": text,
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
        },
    }
