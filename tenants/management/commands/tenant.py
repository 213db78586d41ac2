"""Commands for the platform's operator that create, change and list tenants.

manage.py tenant create SLUG --name NAME --owner EMAIL [--plan PLAN] [--region REGION]
manage.py tenant list
manage.py tenant invite-owner SLUG EMAIL
manage.py tenant rename SLUG NAME
manage.py tenant suspend | resume | begin-closing | close SLUG
manage.py tenant purge-cache | drop-identity-provider SLUG
manage.py tenant pools SLUG
manage.py tenant assign-pool SLUG POOL --reason REASON [--language LANGUAGE] [--dedicated]
manage.py tenant unassign-pool SLUG TIER --reason REASON [--language LANGUAGE]
"""

import argparse
from collections.abc import Callable
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from django.core.management.base import CommandError
from django.utils import timezone

from caret.contracts.policy import ANY_LANGUAGE, Tier
from caret.contracts.snapshot import TenantStatus
from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError, NotFound
from tenants.fleet.operators.queries import TenantDirectoryRow, list_all_tenants
from tenants.fleet.pools.assignments import (
    AssignmentView,
    NewAssignment,
    assign_pool,
    list_assignments,
    read_known_pools,
    unassign_pool,
)
from tenants.identity.members.tenant_status import purge_cache, set_status
from tenants.identity.sso.operations import remove_provider
from tenants.identity.sso.queries import get_rules
from tenants.identity.tenant_lifecycle import (
    NewTenant,
    OwnerInvitation,
    invite_owner,
    onboard_tenant,
    rename_tenant,
)
from tenants.security.authorization.actor import Actor, system_actor
from tenants.security.authorization.directory import find_tenant

_STATUSES: Final = MappingProxyType(
    {
        "suspend": (TenantStatus.SUSPENDED, "reject requests with its API keys"),
        "resume": (TenantStatus.ACTIVE, "end the suspension"),
        "begin-closing": (TenantStatus.CLOSING, "allow only export and erasure"),
        "close": (TenantStatus.CLOSED, "end sign-in for good"),
    }
)


class Command(NoSystemChecksCommand):
    help = "Create, list, rename, suspend, resume and close tenants."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        create = commands.add_parser("create", help="create a tenant and invite its first owner")
        create.add_argument("slug", help="its name in URLs and commands; it cannot be changed")
        create.add_argument("--name", required=True, help="the name that people see")
        create.add_argument(
            "--owner", required=True, metavar="EMAIL", help="address that gets the invitation"
        )
        create.add_argument("--plan", help="slug of its plan; without it the tenant is not billed")
        create.add_argument("--region", help="region where its data is stored")
        commands.add_parser("list", help="list all tenants, oldest first")
        invite = commands.add_parser(
            "invite-owner", help="invite an owner, and print the link once"
        )
        invite.add_argument("slug")
        invite.add_argument("email")
        rename = _add_change(commands, "rename", "change the name that people see")
        rename.add_argument("name")
        for command, (_, effect) in _STATUSES.items():
            _add_change(commands, command, effect)
        _add_change(commands, "purge-cache", "purge its prefix cache")
        _add_change(
            commands,
            "drop-identity-provider",
            "let its users sign in with passwords again if they are locked out",
        )

        _add_change(commands, "pools", "list the pools that are assigned to it")
        assign = _add_change(commands, "assign-pool", "let a pool serve it")
        assign.add_argument("pool", help="as the gateways' pools file names it")
        assign.add_argument("--dedicated", action="store_true", help="no other tenant may use it")
        unassign = _add_change(commands, "unassign-pool", "let the tier's shared pool serve it")
        unassign.add_argument("tier", type=Tier, choices=list(Tier))
        for with_language in (assign, unassign):
            with_language.add_argument(
                "--language", default=ANY_LANGUAGE, help="only for this language"
            )

    def handle(self, *args: Any, **options: Any) -> None:
        command, now = options["command"], timezone.now()
        try:
            if command == "list":
                output = _list_tenants()
            elif command == "create":
                output = _create_tenant(options, now)
            else:
                output = _change_tenant(command, options, now)
        except DomainError as error:
            raise CommandError(error.message) from error
        self.stdout.write(output)


def _add_change(commands: Any, name: str, effect: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=effect)
    parser.add_argument("slug")
    parser.add_argument("--reason", default="", help="reason for the audit log")
    return parser


def _list_tenants() -> str:
    rows = [_format_row(each) for each in list_all_tenants()]
    return "\n".join(rows) or "There are no tenants."


def _format_row(row: TenantDirectoryRow) -> str:
    return f"{row.slug:<24} {row.status.value:<10} {row.region:<12} {row.name}"


def _create_tenant(options: dict[str, Any], now: datetime) -> str:
    new = NewTenant(
        slug=options["slug"],
        name=options["name"],
        owner_email=options["owner"],
        plan=options["plan"],
        region=options["region"],
    )
    tenant = onboard_tenant(new=new, actor_for=system_actor, now=now)
    return f"Created the tenant {tenant.slug}.\n{_describe_invitation(tenant.owner_invitation)}"


def _describe_invitation(invitation: OwnerInvitation) -> str:
    delivery = "was sent to" if invitation.is_mailed else "could NOT be sent to"
    return (
        f"The invitation {delivery} {invitation.email}. Its link is shown once. It works once, "
        f"until {invitation.expires_at:%Y-%m-%d %H:%M} UTC:\n{invitation.url}"
    )


def _change_tenant(command: str, options: dict[str, Any], now: datetime) -> str:
    tenant_id = find_tenant(slug=options["slug"])
    if tenant_id is None:
        raise NotFound("There is no tenant {slug}.", slug=options["slug"])
    actor, slug = system_actor(tenant_id), options["slug"]
    if command == "invite-owner":
        return _describe_invitation(invite_owner(actor=actor, email=options["email"], now=now))
    reason = options["reason"]
    if command == "rename":
        rename_tenant(actor=actor, name=options["name"], reason=reason, now=now)
        return f"{slug} is now called {options['name'].strip()}."
    if command in _STATUSES:
        status = _STATUSES[command][0]
        set_status(actor=actor, status=status, reason=reason, now=now)
        return f"{slug} is {status.value}; gateways act on it within a second."
    if command in _POOL_COMMANDS:
        return _POOL_COMMANDS[command](actor, options, now)
    return _EFFECTS[command](actor, slug, reason, now)


def _purge_cache(actor: Actor, slug: str, reason: str, now: datetime) -> str:
    epoch = purge_cache(actor=actor, reason=reason, now=now)
    return f"The prefix cache of {slug} was purged (epoch {epoch})."


def _drop_identity_provider(actor: Actor, _slug: str, reason: str, now: datetime) -> str:
    """Remove the identity provider and return the output. Raises InvalidValue, NotFound."""
    provider = get_rules(actor=actor).provider
    if provider is None:
        raise NotFound("This tenant has no identity provider.")
    remove_provider(actor=actor, reason=reason, now=now)
    return f"Removed {provider.issuer}. Users sign in with their passwords again."


def _assign_pool(actor: Actor, options: dict[str, Any], now: datetime) -> str:
    assigned = assign_pool(
        actor=actor,
        assignment=NewAssignment(options["pool"], options["language"], options["dedicated"]),
        known=read_known_pools(),
        reason=options["reason"],
        now=now,
    )
    return f"{_format_assignment(assigned)}\nGateways act on it within a second."


def _unassign_pool(actor: Actor, options: dict[str, Any], now: datetime) -> str:
    tier, language = options["tier"], options["language"]
    unassign_pool(actor=actor, tier=tier, language=language, reason=options["reason"], now=now)
    return f"The shared pool of the tier {tier} serves {options['slug']} within a second."


def _list_pools(actor: Actor, _options: dict[str, Any], _now: datetime) -> str:
    rows = [_format_assignment(each) for each in list_assignments(tenant_id=actor.tenant_id)]
    return "\n".join(rows) or "No pool is assigned. The shared pool of each tier serves the tenant."


def _format_assignment(row: AssignmentView) -> str:
    sharing = "dedicated" if row.is_dedicated else "shared"
    return f"{row.tier:<8} {row.language:<16} {row.pool:<24} {sharing}"


_POOL_COMMANDS: Final[dict[str, Callable[[Actor, dict[str, Any], datetime], str]]] = {
    "pools": _list_pools,
    "assign-pool": _assign_pool,
    "unassign-pool": _unassign_pool,
}
_EFFECTS: Final[dict[str, Callable[[Actor, str, str, datetime], str]]] = {
    "purge-cache": _purge_cache,
    "drop-identity-provider": _drop_identity_provider,
}
