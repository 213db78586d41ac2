"""What our management commands derive from."""

from django.core.management.base import BaseCommand


class NoSystemChecksCommand(BaseCommand):
    """Begins at once. Django's system checks load every address of console and API, some seconds of
    work of which a command needs nothing; `manage.py check` and the console's start run them.
    """

    requires_system_checks = ()
