"""Set-up for these tests, which use Django."""

from tests.stack.django_setup import pytest_configure as pytest_configure
