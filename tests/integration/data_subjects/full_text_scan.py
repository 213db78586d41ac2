"""A search for a text in all stores: every table, every key of Redis, every file."""

from pathlib import Path

from django.db import connection

from caret.foundation.ids import TenantId
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.redis_connection import connect


def find_places(text: str, tenant_id: TenantId, folder: Path) -> set[str]:
    """Return the tables, keys and files that contain the text, also in hexadecimal."""
    return _tables(text, tenant_id) | _keys(text) | _files(text, folder)


def _tables(text: str, tenant_id: TenantId) -> set[str]:
    """Search the tables as the application's role, in Postgres' text format of rows."""
    needle = [f"%{text}%", f"%{text.encode().hex()}%"]
    with tenant_scope(tenant_id), connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT table_name FROM information_schema.table_privileges"
            " WHERE privilege_type = 'SELECT' AND table_schema = 'public'"
            " AND grantee = current_user"
        )
        found = set()
        for (name,) in cursor.fetchall():
            cursor.execute(
                f'SELECT EXISTS (SELECT FROM "{name}" t WHERE t::text ILIKE ANY (%s))',  # noqa: S608
                [needle],
            )
            found |= {name} if cursor.fetchone()[0] else set()
    return found


def _keys(text: str) -> set[str]:
    redis, needle = connect(), text.encode()
    found = set()
    for key in redis.scan_iter():
        dumped = redis.dump(key) or b""
        content = dumped + repr(_read(key)).encode()
        found |= {key.decode()} if needle in key or needle in content else set()
    return found


def _read(key: bytes) -> object:
    """Return the value of a key; dump() may have compressed it."""
    redis = connect()
    readers = {
        b"string": redis.get,
        b"hash": redis.hgetall,
        b"stream": redis.xrange,
        b"list": lambda name: redis.lrange(name, 0, -1),
        b"set": redis.smembers,
        b"zset": lambda name: redis.zrange(name, 0, -1),
    }
    kind = redis.type(key)
    return readers[kind](key) if kind in readers else None  # type: ignore[operator]  # redis-py's types are of both clients


def _files(text: str, folder: Path) -> set[str]:
    needle = text.encode()
    return {
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and (needle in path.read_bytes() or text in str(path))
    }
