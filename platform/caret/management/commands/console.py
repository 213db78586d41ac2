"""`manage.py console`: the web console and the REST API.

It listens on CARET_CONSOLE_HOST and CARET_CONSOLE_PORT.
"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from caret.foundation.environment import env_int, env_text
from caret.foundation.log_config import configure_logging
from caret.foundation.metrics_server import serve_metrics
from caret.foundation.postgres.roles import RoleBypassesRls, require_rls_bound_role
from caret.foundation.web.server import run_server
from caret.foundation.web.server_limits import ServerLimits
from console.api.leak_report_auth import load_github_keys
from console.web.request_metrics import registry
from tenants.security.encryption.startup_check import RootKeysUnusable, require_root_keys


class Command(BaseCommand):
    help = "Serve the web console and the REST API."
    # Django's checks import all pages, which takes seconds. handle() runs them last.
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until a signal. Raises CommandError, and BadSetting for a wrong setting."""
        configure_logging("console")
        try:
            require_rls_bound_role()
            require_root_keys()
        except (RoleBypassesRls, RootKeysUnusable) as error:
            raise CommandError(str(error)) from error
        load_github_keys()
        ServerLimits.from_environment()  # only for the error of a wrong setting
        self.check()
        serve_metrics(registry)
        run_server(
            "caret.asgi:console",
            host=env_text("CARET_CONSOLE_HOST", "127.0.0.1"),
            port=env_int("CARET_CONSOLE_PORT", 8400, low=1, high=65_535),
            ws_max_size=1024,  # bytes; clients send nothing on the WebSockets of live metrics
            lifespan="off",
            timeout_graceful_shutdown=5,  # seconds
        )
