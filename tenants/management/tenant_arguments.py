"""Arguments and types that the subcommands of `manage.py tenant` share."""

import argparse
from collections.abc import Callable
from datetime import datetime
from typing import Any

from tenants.security.authorization.actor import Actor

# Runs a subcommand for the tenant with this slug, and returns its output. Raises DomainError.
Handler = Callable[[Actor, str, dict[str, Any], datetime], str]


def add_tenant_parser(
    commands: Any, name: str, effect: str, *, needs_reason: bool = True
) -> argparse.ArgumentParser:
    """Add the subcommand `name`, which takes a tenant's slug and a reason.

    `commands` is the result of add_subparsers, and `effect` is the help text. If `needs_reason` is
    False, the reason may be left out.
    """
    parser: argparse.ArgumentParser = commands.add_parser(name, help=effect)
    parser.add_argument("slug")
    parser.add_argument("--reason", required=needs_reason, default="", help="for the audit log")
    return parser
