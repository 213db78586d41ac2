"""Commands for the platform's operator that create, change and list tenants.

manage.py tenant create SLUG --name NAME --owner EMAIL [--plan PLAN] [--region REGION]
                        [--pool POOL]... [--trial-ends DAY]
manage.py tenant list
manage.py tenant invite-owner SLUG EMAIL
manage.py tenant rename SLUG NAME --reason REASON
manage.py tenant appoint-owner SLUG EMAIL --reason REASON
manage.py tenant trial SLUG [DAY] --reason REASON
manage.py tenant suspend | resume SLUG --reason REASON
manage.py tenant close SLUG --reason REASON [--grace-days DAYS]
manage.py tenant close-now SLUG --reason REASON --confirm SLUG
manage.py tenant closing SLUG [--export FILE] [--certificate FILE]
manage.py tenant purge-cache SLUG [--reason REASON]
manage.py tenant drop-identity-provider SLUG --reason REASON
manage.py tenant pools SLUG
manage.py tenant assign-pool SLUG POOL --reason REASON [--language LANGUAGE] [--dedicated]
manage.py tenant unassign-pool SLUG TIER --reason REASON [--language LANGUAGE]
"""

import argparse
from datetime import date, datetime
from types import MappingProxyType
from typing import Any, Final

from django.core.management.base import CommandError
from django.utils import timezone

from caret.contracts.snapshot import TenantStatus
from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError, NotFound
from tenants.fleet.operators import operations
from tenants.fleet.operators.queries import TenantDirectoryRow, find_by_slug, list_all_tenants
from tenants.fleet.pools.assignments import onboard_in_pools
from tenants.identity.members.tenant_status import purge_cache
from tenants.identity.sso.operations import remove_provider
from tenants.identity.sso.queries import get_rules
from tenants.identity.tenant_lifecycle import NewTenant, OwnerInvitation, invite_owner
from tenants.management.tenant_arguments import Handler, add_tenant_parser
from tenants.management.tenant_closing import CLOSING_HANDLERS, add_closing_parsers
from tenants.management.tenant_pools import POOL_HANDLERS, add_pool_parsers
from tenants.security.authorization.actor import Actor, build_system_actor

# The new status and the help text of each subcommand that changes only the status.
_STATUSES: Final = MappingProxyType(
    {
        "suspend": (TenantStatus.SUSPENDED, "reject requests with its API keys"),
        "resume": (TenantStatus.ACTIVE, "end the suspension, or cancel the closing"),
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
        _add_pool_argument(create)
        create.add_argument(
            "--trial-ends", type=_read_day, metavar="DAY", help="last day (UTC) with completions"
        )
        commands.add_parser("list", help="list all tenants, oldest first")
        invite = commands.add_parser(
            "invite-owner", help="invite an owner, and print the link once"
        )
        invite.add_argument("slug")
        invite.add_argument("email")
        rename = add_tenant_parser(commands, "rename", "change the name that people see")
        rename.add_argument("name")
        appoint = add_tenant_parser(
            commands,
            "appoint-owner",
            "make a member an owner, for example because the only owner cannot be reached",
        )
        appoint.add_argument("email")
        trial = add_tenant_parser(
            commands, "trial", "change the last day of its trial, or end the trial"
        )
        trial.add_argument(
            "day", nargs="?", type=_read_day, help="such as 2027-01-31; without it: no trial"
        )
        add_closing_parsers(commands)
        for command, (_, effect) in _STATUSES.items():
            add_tenant_parser(commands, command, effect)
        add_tenant_parser(commands, "purge-cache", "purge its prefix cache", needs_reason=False)
        add_tenant_parser(
            commands,
            "drop-identity-provider",
            "remove its identity provider; users who are locked out sign in with passwords again",
        )
        add_pool_parsers(commands)

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


def _read_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError("Enter a day such as 2027-01-31.") from error


def _add_pool_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pool",
        dest="pools",
        action="append",
        default=[],
        help="pool that serves all of its requests of the pool's tier; repeat it for another tier",
    )


def _list_tenants() -> str:
    rows = [_format_row(row) for row in list_all_tenants()]
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
        trial_ends_on=options["trial_ends"],
    )
    tenant = onboard_in_pools(
        new=new, pools=options["pools"], actor_for=build_system_actor, now=now
    )
    return f"Created the tenant {tenant.slug}.\n{_describe_invitation(tenant.owner_invitation)}"


def _describe_invitation(invitation: OwnerInvitation) -> str:
    delivery = "was sent to" if invitation.is_mailed else "could NOT be sent to"
    return (
        f"The invitation {delivery} {invitation.email}. Its link is shown once. It works once, "
        f"until {invitation.expires_at:%Y-%m-%d %H:%M} UTC:\n{invitation.url}"
    )


def _change_tenant(command: str, options: dict[str, Any], now: datetime) -> str:
    row = find_by_slug(options["slug"])
    return _HANDLERS[command](build_system_actor(row.tenant_id), row.slug, options, now)


def _invite_owner(actor: Actor, _slug: str, options: dict[str, Any], now: datetime) -> str:
    return _describe_invitation(invite_owner(actor=actor, email=options["email"], now=now))


def _set_status(actor: Actor, slug: str, options: dict[str, Any], now: datetime) -> str:
    status, _ = _STATUSES[options["command"]]
    operations.change_status(actor=actor, status=status, reason=options["reason"], now=now)
    return f"{slug} is {status.value}; gateways act on it within a second."


def _rename(actor: Actor, slug: str, options: dict[str, Any], now: datetime) -> str:
    operations.change_name(actor=actor, name=options["name"], reason=options["reason"], now=now)
    return f"{slug} is now called {options['name'].strip()}."


def _appoint_owner(actor: Actor, slug: str, options: dict[str, Any], now: datetime) -> str:
    email, reason = options["email"], options["reason"]
    operations.appoint_owner(actor=actor, email=email, reason=reason, now=now)
    return f"{email} is now an owner of {slug}."


def _change_trial(actor: Actor, slug: str, options: dict[str, Any], now: datetime) -> str:
    ends_on = options["day"]
    operations.change_trial(actor=actor, ends_on=ends_on, reason=options["reason"], now=now)
    if ends_on is None:
        return f"{slug} has no trial any more."
    return f"The trial of {slug} ends on {ends_on}."


def _purge_cache(actor: Actor, slug: str, options: dict[str, Any], now: datetime) -> str:
    epoch = purge_cache(actor=actor, reason=options["reason"], now=now)
    return f"The prefix cache of {slug} was purged (epoch {epoch})."


def _drop_identity_provider(
    actor: Actor, _slug: str, options: dict[str, Any], now: datetime
) -> str:
    """Remove the identity provider and return the output. Raises InvalidValue, NotFound."""
    provider = get_rules(actor=actor).provider
    if provider is None:
        raise NotFound("This tenant has no identity provider.")
    remove_provider(actor=actor, reason=options["reason"], now=now)
    return f"Removed {provider.issuer}. Users sign in with their passwords again."


_HANDLERS: Final[dict[str, Handler]] = {
    **POOL_HANDLERS,
    **CLOSING_HANDLERS,
    **dict.fromkeys(_STATUSES, _set_status),
    "invite-owner": _invite_owner,
    "rename": _rename,
    "appoint-owner": _appoint_owner,
    "trial": _change_trial,
    "purge-cache": _purge_cache,
    "drop-identity-provider": _drop_identity_provider,
}
