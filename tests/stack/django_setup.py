"""Set-up of Django for test folders that import its models: their conftest.py imports the hook
below.

Other tests start without Django, which takes a second to set up.
"""

import os

import django
import pytest
from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, connections
from pytest_django.plugin import blocking_manager_key


def pytest_configure(config: pytest.Config) -> None:
    """Set up Django for the home that tests/conftest.py made, and block its database.

    pytest calls this hook when it loads the conftest.py. pytest-django blocks the database itself
    only if Django was set up before the collection.
    """
    if apps.ready:
        return
    os.environ["DJANGO_SETTINGS_MODULE"] = "caret.settings"
    django.setup()
    # Worker processes would read the settings of this home instead of their own.
    del os.environ["DJANGO_SETTINGS_MODULE"]
    # A response that a test closes would close the connection, which later tests use again.
    connections.settings[DEFAULT_DB_ALIAS]["CONN_MAX_AGE"] = None
    config.stash[blocking_manager_key].block()
