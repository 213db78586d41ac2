"""`manage.py operator_key create NAME | revoke LOOKUP_ID | list`.

Manages the keys of provisioning scripts for the platform API (/api/v1/platform).
"""

import argparse
from typing import Any, Final

from django.core.management.base import CommandError
from django.utils import timezone

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError
from tenants.base.operator_roles import OperatorScope
from tenants.fleet.operators.keys import (
    MAX_LIFETIME_DAYS,
    OperatorKeyView,
    create_operator_key,
    list_operator_keys,
    revoke_operator_key,
)

_DEFAULT_DAYS: Final = 90


class Command(NoSystemChecksCommand):
    help = "Create, revoke and list keys for the platform API."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        create = commands.add_parser("create", help="create a key, and show its text once")
        create.add_argument("name", help="name of the key, such as the script that uses it")
        create.add_argument(
            "--scope",
            dest="scopes",
            action="append",
            choices=[scope.value for scope in OperatorScope],
            help="a scope of the key; repeat for several; default: all",
        )
        create.add_argument(
            "--days",
            type=int,
            default=_DEFAULT_DAYS,
            help=f"lifetime of the key, at most {MAX_LIFETIME_DAYS}; default: {_DEFAULT_DAYS}",
        )
        revoke = commands.add_parser("revoke", help="revoke a key; it stops working at once")
        revoke.add_argument("lookup_id", help="lookup ID of the key, as `list` shows it")
        commands.add_parser("list", help="list all keys, also revoked and expired ones")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self.stdout.write(_run_command(options))
        except DomainError as error:
            raise CommandError(error.message) from error


def _run_command(options: dict[str, Any]) -> str:
    """Run the subcommand and return its output. Raises DomainError."""
    command, now = options["command"], timezone.now()
    if command == "list":
        return _list_keys()
    if command == "revoke":
        revoke_operator_key(lookup_id=options["lookup_id"], now=now)
        return f"The operator key {options['lookup_id']} is revoked."
    scopes = [OperatorScope(scope) for scope in options["scopes"] or OperatorScope]
    new_key = create_operator_key(
        name=options["name"], scopes=scopes, days=options["days"], now=now
    )
    return (
        f"The operator key {new_key.key.lookup_id} expires on {new_key.key.expires_at:%Y-%m-%d}. "
        f"Its text is shown once:\n{new_key.text}"
    )


def _list_keys() -> str:
    rows = [_format_key(key) for key in list_operator_keys()]
    return "\n".join(rows) or "There are no operator keys."


def _format_key(key: OperatorKeyView) -> str:
    expiry = "revoked" if key.revoked_at else f"{key.expires_at:%Y-%m-%d}"
    scopes = " ".join(sorted(key.scopes))
    return f"{key.lookup_id}  {expiry:<10}  {scopes:<27}  {key.name}"
