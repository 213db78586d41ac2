"""`manage.py console`: the web console and the REST API.

CARET_CONSOLE_HOST and CARET_CONSOLE_PORT say where it listens. CARET_TRUSTED_PROXIES names the
addresses whose X-Forwarded-* headers count; nobody's do by default.
"""

from typing import Any, Final

import uvicorn
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.management.base import BaseCommand, CommandError

from caret.foundation.environment import env_int, env_list, env_text
from caret.foundation.logs import configure_logging
from caret.foundation.postgres.roles import RoleTooStrong, require_bound_role
from caret.foundation.web.body_limit import Application, BodyLimit
from caret.foundation.web.health import Health
from caret.foundation.web.request_limit import Limits, RequestLimit

# Each request in flight holds a thread and a connection to Postgres (facts/asgi.md).
LIMITS: Final = Limits(
    max_requests=64,
    max_wait_s=10.0,
    max_transfer_s=15.0,
    max_held_bytes=64 * 1024 * 1024,
)


class Command(BaseCommand):
    help = "Serves the web console and the REST API."

    def handle(self, *args: Any, **options: Any) -> None:
        configure_logging("console")
        try:
            require_bound_role()
        except RoleTooStrong as error:
            raise CommandError(str(error)) from error
        proxies = env_list("CARET_TRUSTED_PROXIES")
        uvicorn.run(
            _guarded(get_asgi_application()),
            host=env_text("CARET_CONSOLE_HOST", "127.0.0.1"),
            port=env_int("CARET_CONSOLE_PORT", 8400, low=1, high=65_535),
            loop="uvloop",
            http="httptools",
            ws="none",
            lifespan="off",
            proxy_headers=bool(proxies),
            forwarded_allow_ips=proxies,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=5,
        )


def _guarded(application: Application) -> Application:
    limited = RequestLimit(application, LIMITS)
    return Health(BodyLimit(limited, max_bytes=settings.DATA_UPLOAD_MAX_MEMORY_SIZE))
