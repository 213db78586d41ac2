"""A search for a text in all stores: every table, every Redis key, every file."""

from pathlib import Path

from django.db import connection

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.redis_connection import connect_to_redis


def find_occurrences(text: str, tenant_id: TenantId, folder: Path) -> set[str]:
    """Return the tables, Redis keys and files that contain the text.

    The tables are also searched for the text's bytes in hexadecimal, as Postgres shows binary
    columns.
    """
    return _search_tables(text, tenant_id) | _search_redis(text) | _search_files(text, folder)


def _search_tables(text: str, tenant_id: TenantId) -> set[str]:
    """Search the rows, as text, of all tables that the application's role can read."""
    patterns = [f"%{text}%", f"%{text.encode().hex()}%"]
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT table_name FROM information_schema.table_privileges"
            " WHERE privilege_type = 'SELECT' AND table_schema = 'public'"
            " AND grantee = current_user"
        )
        names = set()
        for (name,) in cursor.fetchall():
            cursor.execute(
                f'SELECT EXISTS (SELECT FROM "{name}" t WHERE t::text ILIKE ANY (%s))',  # noqa: S608
                [patterns],
            )
            if cursor.fetchone()[0]:
                names.add(name)
    return names


def _search_redis(text: str) -> set[str]:
    redis, needle = connect_to_redis(), text.encode()
    names = set()
    for redis_key in redis.scan_iter():
        dumped = redis.dump(redis_key) or b""  # None: the Redis key has expired
        content = dumped + repr(_read_value(redis_key)).encode()
        if needle in redis_key or needle in content:
            names.add(redis_key.decode())
    return names


def _read_value(redis_key: bytes) -> object:
    """Return the value of a Redis key, or None if its type is not known here.

    The search reads values besides their DUMP, because a DUMP may be compressed.
    """
    redis = connect_to_redis()
    readers = {
        b"string": redis.get,
        b"hash": redis.hgetall,
        b"stream": redis.xrange,
        b"list": lambda name: redis.lrange(name, 0, -1),
        b"set": redis.smembers,
        b"zset": lambda name: redis.zrange(name, 0, -1),
    }
    value_type = redis.type(redis_key)
    return readers[value_type](redis_key) if value_type in readers else None  # type: ignore[operator]  # redis-py has the same types for its asynchronous client


def _search_files(text: str, folder: Path) -> set[str]:
    needle = text.encode()
    return {
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and (needle in path.read_bytes() or text in str(path))
    }
