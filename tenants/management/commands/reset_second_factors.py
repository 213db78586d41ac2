"""`manage.py reset_second_factors [--reason WHY]`: see platform/docs/runbooks/key-leak.md."""

import argparse
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError
from tenants.identity.sso.mfa_reset import reset_undecryptable_factors
from tenants.security.encryption.startup_check import RootKeysUnusable


class Command(NoSystemChecksCommand):
    help = (
        "After a change of the root secret, remove users' authenticator apps and recovery codes"
        " that cannot be decrypted any more. Other second factors stay. Users get an e-mail."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--reason", default="", help="reason for the audit logs of the users' tenants"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            num_users = reset_undecryptable_factors(reason=options["reason"], now=timezone.now())
        except DomainError as error:
            raise CommandError(error.message) from error
        except RootKeysUnusable as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Users whose second factors were reset: {num_users}.")
