"""The console's ASGI application: Django, for pages and the REST API, behind ASGI middleware.

    health checks > static files > credential notes > body limit > concurrency limit > Django

A credential note tells the server that a request had a valid credential. A WebSocket sends live
metrics to the pages. Completions are served by another process, the gateway.
"""

import os
from typing import Any, Final

import django
import redis
import structlog
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import Error, connections

from caret.foundation.concurrency.wait_for import keep_cancellations
from caret.foundation.web.body_limit import Application, BodyLimitMiddleware, Receive, Send
from caret.foundation.web.concurrency_limit import ConcurrencyLimitMiddleware, ConcurrencyLimits
from caret.foundation.web.credential_notes import CredentialNoteMiddleware
from caret.foundation.web.health_checks import HealthCheckMiddleware
from caret.foundation.web.server_limits import ServerLimits
from tenants.base.redis_connection import connect_to_redis

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "caret.settings")
keep_cancellations()  # before any task starts: Python 3.11 can lose them (ADR 0116)

LIVE_PATH: Final = "/live"
# Each running request occupies a thread and a Postgres connection. ConcurrencyLimits explains the
# fields.
LIMITS: Final = ConcurrencyLimits(
    max_requests=64,
    max_wait_s=10.0,
    max_transfer_s=ServerLimits.from_environment().body_timeout_s,
    stall_s=1.0,
    max_stalled=64,
    max_held_bytes=64 * 1024 * 1024,
    max_held_bytes_per_address=8 * 1024 * 1024,
    uncounted_bytes=16 * 1024,
)

log = structlog.get_logger(__name__)


def _add_middleware(application: Application) -> Application:
    # Imported here: static_files needs Django to be set up.
    from console.web.static_files import StaticFiles, list_static_files

    with_concurrency_limit = ConcurrencyLimitMiddleware(application, LIMITS)
    with_body_limit = BodyLimitMiddleware(
        with_concurrency_limit, max_bytes=settings.DATA_UPLOAD_MAX_MEMORY_SIZE
    )
    return HealthCheckMiddleware(
        StaticFiles(CredentialNoteMiddleware(with_body_limit), list_static_files), _is_ready
    )


async def _is_ready() -> bool:
    """Return whether Postgres and Redis respond.

    The check runs in a thread of its own, and closes the Postgres connection of this thread. The
    connections of requests stay open.
    """
    return await sync_to_async(_ping_databases, thread_sensitive=False)()


def _ping_databases() -> bool:
    try:
        with connections["default"].cursor() as cursor:
            cursor.execute("SELECT 1")
        connect_to_redis().ping()
    except (Error, redis.RedisError) as error:
        log.warning("console.not_ready", reason=type(error).__name__)
        return False
    finally:
        connections["default"].close()
    return True


django.setup(set_prefix=False)  # the handler sets the URL prefix for each request


def _make_handler() -> Application:
    # Imported here: asgi_handler needs Django to be set up.
    from console.web.asgi_handler import Handler

    return Handler()


def _make_live_metrics() -> Application:
    from console.live_metrics.consumer import LiveConsumer

    application: Application = LiveConsumer.as_asgi()
    return application


_pages: Final = _add_middleware(_make_handler())
_live: Final = _make_live_metrics()


async def console(scope: dict[str, Any], receive: Receive, send: Send) -> None:
    """The ASGI application that the server calls."""
    if scope["type"] != "websocket":
        await _pages(scope, receive, send)
    elif scope["path"] == LIVE_PATH:
        await _live(scope, receive, send)
    else:
        await send({"type": "websocket.close"})  # rejected with 403
