"""Commands for the platform's operator that create, change and list tenants.

manage.py tenant create SLUG --name NAME --owner EMAIL [--plan PLAN] [--region REGION]
                        [--pool POOL] [--trial-ends DAY]
manage.py tenant list
manage.py tenant invite-owner SLUG EMAIL
manage.py tenant rename SLUG NAME
manage.py tenant appoint-owner SLUG EMAIL
manage.py tenant trial SLUG [DAY]
manage.py tenant suspend | resume SLUG
manage.py tenant close SLUG [--grace-days DAYS]
manage.py tenant close-now SLUG --confirm SLUG
manage.py tenant closing SLUG [--export FILE] [--certificate FILE]
manage.py tenant purge-cache | drop-identity-provider SLUG
manage.py tenant pools SLUG
manage.py tenant assign-pool SLUG POOL --reason REASON [--language LANGUAGE] [--dedicated]
manage.py tenant unassign-pool SLUG TIER --reason REASON [--language LANGUAGE]
"""

import argparse
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from django.core.management.base import CommandError
from django.utils import timezone

from caret.contracts.policy import ANY_LANGUAGE, Tier
from caret.contracts.snapshot import TenantStatus
from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError, NotFound
from tenants.compliance.tenant_closing import (
    TenantClosure,
    begin_closing,
    close_now,
    find_closure,
    read_final_export,
)
from tenants.fleet.operators.queries import TenantDirectoryRow, list_all_tenants
from tenants.fleet.pools.assignments import (
    AssignmentView,
    NewAssignment,
    assign_pool,
    list_assignments,
    onboard_in_pools,
    read_known_pools,
    unassign_pool,
)
from tenants.identity.members.tenant_status import purge_cache, set_status
from tenants.identity.ownership import appoint_owner
from tenants.identity.sso.operations import remove_provider
from tenants.identity.sso.queries import get_rules
from tenants.identity.tenant_lifecycle import (
    NewTenant,
    OwnerInvitation,
    invite_owner,
    rename_tenant,
)
from tenants.identity.trials import set_trial_end
from tenants.security.authorization.actor import Actor, system_actor
from tenants.security.authorization.directory import find_tenant

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
        _add_pools(create)
        create.add_argument(
            "--trial-ends", type=_read_day, metavar="DAY", help="last day (UTC) with completions"
        )
        commands.add_parser("list", help="list all tenants, oldest first")
        invite = commands.add_parser(
            "invite-owner", help="invite an owner, and print the link once"
        )
        invite.add_argument("slug")
        invite.add_argument("email")
        rename = _add_change(commands, "rename", "change the name that people see")
        rename.add_argument("name")
        appoint = _add_change(
            commands, "appoint-owner", "make a member an owner if the only owner cannot be reached"
        )
        appoint.add_argument("email")
        trial = _add_change(commands, "trial", "change the last day of its trial, or end the trial")
        trial.add_argument(
            "day", nargs="?", type=_read_day, help="such as 2027-01-31; without it: no trial"
        )
        _add_closing(commands)
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


def _add_closing(commands: Any) -> None:
    close = _add_change(
        commands, "close", "request the final export, and delete the data after a grace period"
    )
    close.add_argument("--grace-days", type=int, help="default: CARET_CLOSING_GRACE_DAYS")
    now = _add_change(commands, "close-now", "close it at once, and delete its data; final")
    now.add_argument("--confirm", required=True, metavar="SLUG", help="the slug again")
    show = commands.add_parser("closing", help="show how far the closing has come")
    show.add_argument("slug")
    show.add_argument("--export", metavar="FILE", help="write the final export to a file")
    show.add_argument("--certificate", metavar="FILE", help="write the deletion certificate")


def _read_day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError("Enter a day such as 2027-01-31.") from error


def _add_pools(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pool",
        dest="pools",
        action="append",
        default=[],
        help="a pool for all of its requests of that pool's tier; repeat it for another tier",
    )


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
        trial_ends_on=options["trial_ends"],
    )
    tenant = onboard_in_pools(new=new, pools=options["pools"], actor_for=system_actor, now=now)
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
    if command == "closing":
        return _show_closing(actor, slug, options, now)
    reason = options["reason"]
    if command in _WITH_OPTIONS:
        return _WITH_OPTIONS[command](actor, slug, options, now)
    if command in _STATUSES:
        status = _STATUSES[command][0]
        set_status(actor=actor, status=status, reason=reason, now=now)
        return f"{slug} is {status.value}; gateways act on it within a second."
    if command in _POOL_COMMANDS:
        return _POOL_COMMANDS[command](actor, options, now)
    return _EFFECTS[command](actor, slug, reason, now)


def _rename(actor: Actor, slug: str, options: dict[str, Any], now: datetime) -> str:
    rename_tenant(actor=actor, name=options["name"], reason=options["reason"], now=now)
    return f"{slug} is now called {options['name'].strip()}."


def _appoint_owner(actor: Actor, slug: str, options: dict[str, Any], now: datetime) -> str:
    appoint_owner(actor=actor, email=options["email"], reason=options["reason"], now=now)
    return f"{options['email']} is now an owner of {slug}."


def _change_trial(actor: Actor, slug: str, options: dict[str, Any], now: datetime) -> str:
    ends_on = options["day"]
    set_trial_end(actor=actor, ends_on=ends_on, reason=options["reason"], now=now)
    if ends_on is None:
        return f"{slug} has no trial any more."
    return f"The trial of {slug} ends on {ends_on}."


def _begin_closing(actor: Actor, slug: str, options: dict[str, Any], now: datetime) -> str:
    days, reason = options["grace_days"], options["reason"]
    closes_at = begin_closing(actor=actor, reason=reason, now=now, grace_days=days)
    return (
        f"{slug} is closing. Its data is deleted on {closes_at:%Y-%m-%d %H:%M} UTC. "
        f"Until then, `tenant resume {slug}` or `tenant suspend {slug}` cancels this."
    )


def _close_now(actor: Actor, slug: str, options: dict[str, Any], now: datetime) -> str:
    if options["confirm"] != slug:
        raise CommandError("Nothing was closed: --confirm must repeat the tenant's slug.")
    close_now(actor=actor, reason=options["reason"], now=now)
    return f"{slug} is closed. The worker deletes its data within minutes."


def _show_closing(actor: Actor, slug: str, options: dict[str, Any], now: datetime) -> str:
    """Describe the closing, and write the files that the options name. Raises DomainError."""
    found = find_closure(tenant_id=actor.tenant_id)
    lines = _describe_closure(slug, found)
    if options["export"]:
        with Path(options["export"]).open("wb") as file:
            file.writelines(read_final_export(actor=actor, now=now))
        lines.append(f"Wrote the final export to {options['export']}.")
    if options["certificate"]:
        if found.certificate is None:
            raise NotFound("The data is not deleted yet, so there is no certificate.")
        Path(options["certificate"]).write_text(found.certificate, encoding="utf-8")
        lines.append(f"Wrote the deletion certificate to {options['certificate']}.")
    return "\n".join(lines)


def _describe_closure(slug: str, found: TenantClosure) -> list[str]:
    if found.erased_at is not None:
        return [f"The data of {slug} was deleted on {found.erased_at:%Y-%m-%d %H:%M} UTC."]
    if found.is_erasing:
        return [f"The data of {slug} is being deleted."]
    if found.closes_at is None:
        return [f"{slug} is not closing."]
    export = "none" if found.final_export is None else found.final_export.state.value
    return [
        f"The data of {slug} is deleted on {found.closes_at:%Y-%m-%d %H:%M} UTC.",
        f"Final export: {export}.",
    ]


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
_WITH_OPTIONS: Final[dict[str, Callable[[Actor, str, dict[str, Any], datetime], str]]] = {
    "rename": _rename,
    "appoint-owner": _appoint_owner,
    "trial": _change_trial,
    "close": _begin_closing,
    "close-now": _close_now,
}
_EFFECTS: Final[dict[str, Callable[[Actor, str, str, datetime], str]]] = {
    "purge-cache": _purge_cache,
    "drop-identity-provider": _drop_identity_provider,
}
