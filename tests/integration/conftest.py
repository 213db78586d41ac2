"""Set-up for the integration tests, which use Django."""

from tests.stack.django_setup import pytest_configure as pytest_configure
