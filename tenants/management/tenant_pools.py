"""The subcommands of `manage.py tenant` that assign pools to a tenant."""

from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from caret.contracts.policy import ANY_LANGUAGE, Tier
from tenants.fleet.pools.assignments import (
    AssignmentView,
    NewAssignment,
    assign_pool,
    list_assignments,
    read_known_pools,
    unassign_pool,
)
from tenants.management.tenant_arguments import Handler, add_tenant_parser
from tenants.security.authorization.actor import Actor


def add_pool_parsers(commands: Any) -> None:
    pools = commands.add_parser("pools", help="list the pools that are assigned to it")
    pools.add_argument("slug")
    assign = add_tenant_parser(commands, "assign-pool", "let a pool serve it")
    assign.add_argument("pool", help="as the gateways' pools file names it")
    assign.add_argument("--dedicated", action="store_true", help="no other tenant may use it")
    unassign = add_tenant_parser(commands, "unassign-pool", "end the assignment of a pool to it")
    unassign.add_argument("tier", type=Tier, choices=list(Tier))
    for parser in (assign, unassign):
        parser.add_argument("--language", default=ANY_LANGUAGE, help="only for this language")


def _assign_pool(actor: Actor, _slug: str, options: dict[str, Any], now: datetime) -> str:
    assigned = assign_pool(
        actor=actor,
        assignment=NewAssignment(options["pool"], options["language"], options["dedicated"]),
        known_pools=read_known_pools(),
        reason=options["reason"],
        now=now,
    )
    return f"{_format_assignment(assigned)}\nGateways act on it within a second."


def _unassign_pool(actor: Actor, slug: str, options: dict[str, Any], now: datetime) -> str:
    tier, language = options["tier"], options["language"]
    unassign_pool(actor=actor, tier=tier, language=language, reason=options["reason"], now=now)
    part = tier if language == ANY_LANGUAGE else f"{tier} and the language {language}"
    return (
        f"Removed the assignment of {slug} for the tier {part}. Gateways act on it within a second."
    )


def _list_pools(actor: Actor, _slug: str, _options: dict[str, Any], _now: datetime) -> str:
    rows = [_format_assignment(row) for row in list_assignments(tenant_id=actor.tenant_id)]
    return "\n".join(rows) or "No pool is assigned. The shared pool of each tier serves the tenant."


def _format_assignment(row: AssignmentView) -> str:
    sharing = "dedicated" if row.is_dedicated else "shared"
    return f"{row.tier:<8} {row.language:<16} {row.pool:<24} {sharing}"


POOL_HANDLERS: Final = MappingProxyType[str, Handler](
    {"pools": _list_pools, "assign-pool": _assign_pool, "unassign-pool": _unassign_pool}
)
