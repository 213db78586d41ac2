"""Celery's spelling of a Redis address: kombu knows `redis+socket://` where redis-py knows `unix://`."""

from urllib.parse import parse_qs, urlsplit


def broker_from_redis_url(url: str) -> str:
    """`url` itself unless it names a Unix socket."""
    if not url.startswith("unix://"):
        return url
    parts = urlsplit(url)
    database = parse_qs(parts.query).get("db", ["0"])[-1]
    return f"redis+socket://{parts.netloc}{parts.path}?virtual_host={database}"
