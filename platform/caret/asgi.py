"""The console's ASGI application: Django, for pages and the REST API, behind its guards.

    health > size of bodies > requests at one time > Django

Never for streams: those are the gateway's, in a process of its own.
"""

import os
from typing import Final

from django.conf import settings
from django.core.asgi import get_asgi_application

from caret.foundation.web.body_limit import Application, BodyLimit
from caret.foundation.web.health import Health
from caret.foundation.web.request_limit import Limits, RequestLimit
from tenants.readiness import is_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "caret.settings")

# Each request in flight holds a thread and a connection to Postgres.
LIMITS: Final = Limits(
    max_requests=64,
    max_wait_s=10.0,
    max_transfer_s=15.0,
    max_held_bytes=64 * 1024 * 1024,
)


def _guarded(application: Application) -> Application:
    limited = RequestLimit(application, LIMITS)
    bounded = BodyLimit(limited, max_bytes=settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
    return Health(bounded, is_ready)


console = _guarded(get_asgi_application())
