"""Schemathesis's pytest plugin, for folders that use it: their conftest.py imports the hook below.

Its import takes two seconds, so pyproject.toml keeps pytest from loading it for all tests.
"""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.import_plugin("schemathesis.pytest.plugin")
