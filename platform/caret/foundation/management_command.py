"""The base class of our management commands."""

from django.core.management.base import BaseCommand


class NoSystemChecksCommand(BaseCommand):
    """A command that starts without Django's system checks.

    The checks import every URL of the console and the API, which takes seconds. A command does not
    need them. `manage.py check` runs them, and so does the console at start.
    """

    requires_system_checks = ()
