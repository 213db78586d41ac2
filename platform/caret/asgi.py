"""The console's ASGI application: Django, for pages and the REST API; never for streams."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "caret.settings")

console = get_asgi_application()
