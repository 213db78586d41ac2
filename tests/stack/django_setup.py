"""The set-up of Django for the test folders that need it: their conftest.py imports the hook below.

Other tests start without Django, which takes a second to set up.
"""

import os
from typing import Final
from unittest.mock import patch

import django
import pytest
from django.apps import apps
from django.conf import settings
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.db import DEFAULT_DB_ALIAS, connections
from pytest_django.plugin import blocking_manager_key

# After a change for all tenants, the product publishes the snapshots of the newest 50. Here, these
# are mostly tenants of earlier tests.
_PUBLISHED_AT_ONCE: Final = 2


class CheapPasswordHasher(Argon2PasswordHasher):
    """Argon2 for tests: a hash with Django's parameters takes 0.2 s of CPU time."""

    time_cost = 1
    memory_cost = 64
    parallelism = 1


def pytest_configure(config: pytest.Config) -> None:
    """Set up Django for the home that tests/conftest.py made.

    pytest calls this hook when it loads the conftest.py. The hook also makes any use of the
    database an error until a fixture allows it: pytest-django does so only if Django was set up
    before the collection.
    """
    if apps.ready:
        return
    os.environ["DJANGO_SETTINGS_MODULE"] = "caret.settings"
    django.setup()
    settings.PASSWORD_HASHERS = [f"{__name__}.{CheapPasswordHasher.__name__}"]
    # Imported here, because its models need `django.setup()`.
    from tenants.policy import snapshot_version

    patch.object(snapshot_version, "PUBLISHED_AT_ONCE", _PUBLISHED_AT_ONCE).start()
    # Processes that inherit the variable would read the settings of this home instead of their own.
    del os.environ["DJANGO_SETTINGS_MODULE"]
    # None: closing a response does not close the connection, which later tests use again.
    connections.settings[DEFAULT_DB_ALIAS]["CONN_MAX_AGE"] = None
    config.stash[blocking_manager_key].block()
