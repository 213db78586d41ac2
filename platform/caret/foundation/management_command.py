"""The base class of our management commands."""

from django.core.management.base import BaseCommand


class NoSystemChecksCommand(BaseCommand):
    """A command that starts without Django's system checks.

    The checks import every URL of the console and the API. That takes seconds, and a command needs
    none of them. `manage.py check` and the console run them at start.
    """

    requires_system_checks = ()
