"""The base class of our management commands."""

from django.core.management.base import BaseCommand


class NoSystemChecksCommand(BaseCommand):
    """A command that starts without Django's system checks.

    The checks import the views of all URLs of the console and the API, which takes seconds. Most
    commands do not need the checks. `manage.py check` and the start of the console run them.
    """

    requires_system_checks = ()
