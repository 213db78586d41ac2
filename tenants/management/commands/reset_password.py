"""`manage.py reset_password EMAIL [--reason WHY]`: see platform/docs/members-and-sso.md."""

import argparse
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError
from tenants.identity.passwords.reset_mail import mail_reset_link_as_operator


class Command(NoSystemChecksCommand):
    help = "Mail a user a link to set a new password. It works once, within an hour."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("email", metavar="EMAIL", help="the e-mail address of the account")
        parser.add_argument(
            "--reason", default="", help="reason for the audit logs of the user's tenants"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            mail_reset_link_as_operator(
                email=options["email"], reason=options["reason"], now=timezone.now()
            )
        except DomainError as error:
            raise CommandError(error.message) from error
        self.stdout.write("Sent a link that works once, within an hour.")
