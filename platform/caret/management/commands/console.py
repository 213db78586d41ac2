"""`manage.py console`: the web console and the REST API.

CARET_CONSOLE_HOST and CARET_CONSOLE_PORT say where it listens. CARET_TRUSTED_PROXIES names the
addresses whose X-Forwarded-* headers count; nobody's do by default.
"""

from typing import Any

import uvicorn
from django.core.management.base import BaseCommand, CommandError

from caret.foundation.environment import env_int, env_list, env_text
from caret.foundation.logs import configure_logging
from caret.foundation.metrics_port import serve_metrics
from caret.foundation.postgres.roles import RoleTooStrong, require_bound_role
from console.timing import registry
from tenants.encryption.start import RootKeysUnfit, require_root_keys


class Command(BaseCommand):
    help = "Serves the web console and the REST API."

    def handle(self, *args: Any, **options: Any) -> None:
        configure_logging("console")
        try:
            require_bound_role()
            require_root_keys()
        except (RoleTooStrong, RootKeysUnfit) as error:
            raise CommandError(str(error)) from error
        proxies = env_list("CARET_TRUSTED_PROXIES")
        serve_metrics(registry)
        uvicorn.run(
            "caret.asgi:console",
            host=env_text("CARET_CONSOLE_HOST", "127.0.0.1"),
            port=env_int("CARET_CONSOLE_PORT", 8400, low=1, high=65_535),
            loop="uvloop",
            http="httptools",
            ws="websockets-sansio",
            ws_max_size=1024,  # nothing is asked over the live numbers' sockets
            ws_per_message_deflate=False,
            lifespan="off",
            proxy_headers=bool(proxies),
            forwarded_allow_ips=proxies,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=5,
        )
