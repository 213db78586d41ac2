"""Redis URLs for Celery. Its library kombu expects `redis+socket://` instead of `unix://`."""

from urllib.parse import parse_qs, urlsplit


def broker_from_redis_url(url: str) -> str:
    """Return the broker URL for a Redis URL; only the URL of a Unix socket changes.

    Of that URL's parameters, only the database (`db`) is kept.
    """
    if not url.startswith("unix://"):
        return url
    parts = urlsplit(url)
    database = parse_qs(parts.query).get("db", ["0"])[-1]
    return f"redis+socket://{parts.netloc}{parts.path}?virtual_host={database}"
