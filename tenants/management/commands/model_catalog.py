"""Commands with which operators publish models for tenants to choose.

manage.py model_catalog list | pools
manage.py model_catalog publish POOL... --title TITLE [--plan PLAN]... [--position N]
manage.py model_catalog withdraw NAME TIER
"""

import argparse
from datetime import datetime
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone

from caret.contracts.policy import Tier
from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError
from tenants.fleet.pools.assignments import read_known_pools
from tenants.fleet.pools.model_catalog import (
    CatalogEntry,
    NewModel,
    list_catalog,
    publish_model,
    withdraw_model,
)

_OPERATOR = "command line"  # the log events of changes name the operator


class Command(NoSystemChecksCommand):
    help = "Publish and withdraw models. Gateways follow within seconds."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="command", required=True)
        commands.add_parser("list", help="list all models, also withdrawn ones")
        commands.add_parser("pools", help="list the pools that the gateways report")
        publish = commands.add_parser("publish", help="publish the model of one or more pools")
        publish.add_argument("pools", nargs="+", metavar="POOL", help="preferred ones first")
        publish.add_argument("--title", required=True, help="the name that people see")
        publish.add_argument(
            "--plan",
            dest="plans",
            action="append",
            default=[],
            help="slug of a plan that includes it; repeat for several; default: all plans",
        )
        publish.add_argument(
            "--position",
            type=int,
            help="in the list of its tier; default: unchanged, or the last for a new model",
        )
        withdraw = commands.add_parser("withdraw", help="stop offering a model")
        withdraw.add_argument("name", help="the name that its engines use, not the title")
        withdraw.add_argument("tier", type=Tier, choices=list(Tier))

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            output = _run(options, timezone.now())
        except DomainError as error:
            raise CommandError(error.message) from error
        self.stdout.write(output)


def _run(options: dict[str, Any], now: datetime) -> str:
    """Run the command and return its output. Raises DomainError."""
    if options["command"] == "publish":
        model = NewModel(
            options["title"],
            tuple(options["pools"]),
            tuple(options["plans"]),
            options["position"],
        )
        known_pools = read_known_pools()
        return _format_entry(
            publish_model(operator=_OPERATOR, model=model, known_pools=known_pools, now=now)
        )
    if options["command"] == "withdraw":
        name, tier = options["name"], options["tier"]
        withdraw_model(operator=_OPERATOR, name=name, tier=tier, now=now)
        return f"{name} is no longer offered in the tier {tier}."
    if options["command"] == "pools":
        return _list_pools()
    return "\n".join(map(_format_entry, list_catalog())) or "The catalogue is empty."


def _list_pools() -> str:
    pools = sorted(read_known_pools().values(), key=lambda pool: pool.name)
    lines = [f"{pool.name:<24} {pool.tier:<8} {pool.model:<32} {pool.sharing}" for pool in pools]
    return "\n".join(lines) or "No gateway reports its pools."


def _format_entry(entry: CatalogEntry) -> str:
    plans = ", ".join(entry.plans) or "all plans"
    state = "" if entry.is_published else " (withdrawn)"
    model = f"{entry.tier:<8} {entry.position:>3} {entry.name:<32} {entry.title}"
    return f"{model}: {', '.join(entry.pools)}; {plans}{state}"
