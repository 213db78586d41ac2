"""`manage.py manage_operator create | renew | disable HANDLE` and `manage.py manage_operator list`.

Manages the accounts for the operators' own pages (CARET_OPERATOR_ADMIN_PATH).
"""

import argparse
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError
from tenants.base.operator_roles import OperatorRole
from tenants.fleet.operators.accounts import (
    Credentials,
    create_operator,
    disable_operator,
    list_operators,
    reset_operator,
)


class Command(NoSystemChecksCommand):
    help = "Create, renew, disable and list the accounts of operators."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        subcommands = parser.add_subparsers(dest="what", required=True)
        create = subcommands.add_parser(
            "create", help="create an account; shows its password and second factor once"
        )
        create.add_argument("handle", help="name of the account; tenants' audit logs show it")
        create.add_argument("--name", required=True)
        create.add_argument(
            "--role",
            choices=[role.value for role in OperatorRole],
            default=OperatorRole.SUPPORT.value,
            help="support is read-only; admin changes plan, status, region and limits",
        )
        renew = subcommands.add_parser(
            "renew", help="set a new password and second factor; enables the account"
        )
        renew.add_argument("handle")
        subcommands.add_parser(
            "disable", help="disable an account and end its sessions at once"
        ).add_argument("handle")
        subcommands.add_parser("list", help="list all accounts")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.stdout.write(_run_command(options))
        except DomainError as error:
            raise CommandError(error.message) from error


def _run_command(options: dict[str, Any]) -> str:
    """Run the subcommand and return its output. Raises DomainError."""
    subcommand, now = options["what"], timezone.now()
    if subcommand == "list":
        return _list_operators()
    handle = options["handle"]
    if subcommand == "disable":
        disable_operator(handle=handle, now=now)
        return f"{handle} is signed out and cannot sign in any more."
    if subcommand == "renew":
        return _format_credentials(handle, reset_operator(handle=handle))
    role = OperatorRole(options["role"])
    return _format_credentials(
        handle, create_operator(handle=handle, name=options["name"], role=role, now=now)
    )


def _format_credentials(handle: str, credentials: Credentials) -> str:
    return "\n".join(
        [
            f"{handle} signs in with this password and a code from an app. Both are shown once.",
            f"password       {credentials.password}",
            f"second factor  {credentials.totp_uri}",
        ]
    )


def _list_operators() -> str:
    rows = [
        f"{account.handle:<20} {account.role.value:<8}"
        f" {'disabled' if account.disabled_at else 'enabled':<8} {account.name}"
        for account in list_operators()
    ]
    return "\n".join(rows) or "There are no operators."
