"""`manage.py billing ...`: plans, prices, subscriptions, credits and invoices, for the operator."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import msgspec
from django.core.management.base import CommandError
from django.utils import timezone

from caret.contracts.policy import Tier
from caret.contracts.pricing import TierPrices
from caret.foundation.management_command import NoSystemChecksCommand
from tenants.base.errors import DomainError, InvalidValue
from tenants.base.money import MICROS, MICROS_PER_CENT, Currency
from tenants.billing.invoices.billing_profile import set_billing_profile
from tenants.billing.invoices.document import InvoiceParty, InvoiceTax
from tenants.billing.invoices.operations import issue_credit_note, issue_due_invoices
from tenants.billing.ledger.credits import grant_credit
from tenants.billing.plans.operations import NewPrice, add_price, create_plan, subscribe_tenant
from tenants.billing.rating.clock import choose_billing_time
from tenants.billing.rating.operations import rate_tenant
from tenants.fleet.pools.model_catalog import list_catalog
from tenants.security.authorization.actor import Actor, build_system_actor
from tenants.security.authorization.directory import find_tenant

# Errors of reading a JSON file and of its content.
_UNREADABLE = (OSError, ValueError, TypeError, msgspec.MsgspecError, argparse.ArgumentTypeError)


class _ProfileFile(msgspec.Struct):
    """The content of the file of `billing profile`."""

    customer: InvoiceParty
    tax: InvoiceTax = InvoiceTax(name="", basis_points=0)


class Command(NoSystemChecksCommand):
    help = (
        "Manage plans, prices, subscriptions, credits and invoices. See platform/docs/billing.md."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        commands = parser.add_subparsers(dest="what", required=True)
        plan = commands.add_parser("plan", help="create a plan without a price")
        plan.add_argument("plan")
        plan.add_argument("--name", required=True)
        plan.add_argument("--currency", required=True, choices=[c.value for c in Currency])
        price = commands.add_parser("price", help="add a price that starts on a day")
        price.add_argument("plan")
        price.add_argument("--from", dest="day", required=True, type=date.fromisoformat)
        price.add_argument(
            "--seat",
            required=True,
            type=_read_money,
            help="price of a seat for a month, such as 19.00",
        )
        price.add_argument(
            "--tiers",
            required=True,
            type=Path,
            help="JSON file: tier -> prices of a million tokens",
        )
        price.add_argument(
            "--models",
            type=Path,
            help="JSON file: model -> prices of a million tokens (default: those of its tier)",
        )
        subscription = commands.add_parser("subscribe", help="subscribe a tenant to a plan")
        subscription.add_argument("tenant")
        subscription.add_argument("plan")
        subscription.add_argument("--from", dest="day", required=True, type=date.fromisoformat)
        profile = commands.add_parser("profile", help="set the recipient and the tax of invoices")
        profile.add_argument("tenant")
        profile.add_argument("--file", required=True, type=Path, help="JSON file: customer and tax")
        credit = commands.add_parser("credit", help="grant a credit to a tenant")
        credit.add_argument("tenant")
        credit.add_argument("amount", type=_read_money)
        credit.add_argument("--reason", required=True)
        invoice = commands.add_parser("invoice", help="issue the invoices due now")
        invoice.add_argument("tenant")
        note = commands.add_parser(
            "credit-note", help="issue a credit note for an amount of an invoice, before tax"
        )
        note.add_argument("tenant")
        note.add_argument("number", type=int, help="number of the invoice")
        note.add_argument("amount", type=_read_money)
        note.add_argument("--reason", required=True)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            output = _COMMANDS[options["what"]](options)
        except InvalidValue as error:
            raise CommandError(f"{error.field}: {error.message}") from error
        except DomainError as error:
            raise CommandError(error.message) from error
        self.stdout.write(output)


def _create_plan(options: dict[str, Any]) -> str:
    currency = Currency(options["currency"])
    create_plan(slug=options["plan"], name=options["name"], currency=currency, now=timezone.now())
    return f"Created the plan {options['plan']}. Add a price next."


def _add_price(options: dict[str, Any]) -> str:
    """Add a price. The files contain amounts such as "0.15", for a million tokens."""
    with _report_unreadable_file(options["tiers"]):
        tiers = {Tier(tier): prices for tier, prices in _read_prices(options["tiers"]).items()}
    model_prices: dict[str, TierPrices] = {}
    if options["models"] is not None:
        with _report_unreadable_file(options["models"]):
            model_prices = _read_prices(options["models"])
    new = NewPrice(options["day"], options["seat"], tiers, model_prices)
    add_price(plan=options["plan"], new=new, now=timezone.now())
    lines = [f"The price applies from {options['day']}, 00:00 UTC."]
    catalog = {entry.name for entry in list_catalog()}
    lines += [
        f"The catalogue has no model {name}. Check the spelling, or publish the model."
        for name in sorted(set(model_prices) - catalog)
    ]
    return "\n".join(lines)


def _read_prices(file: Path) -> dict[str, TierPrices]:
    """Return the prices of a file by tier or model. Raises one of _UNREADABLE."""
    amounts = msgspec.json.decode(file.read_bytes(), type=dict[str, dict[str, str | float]])
    return {
        name: TierPrices(**{kind: _read_money(str(amount)) for kind, amount in prices.items()})
        for name, prices in amounts.items()
    }


@contextmanager
def _report_unreadable_file(file: Path) -> Iterator[None]:
    """Raise CommandError if the block cannot read the file, or if its content is invalid."""
    try:
        yield
    except _UNREADABLE as error:
        raise CommandError(f"Cannot read {file}: {error}") from error


def _subscribe_tenant(options: dict[str, Any]) -> str:
    subscribe_tenant(
        actor=_read_actor(options),
        plan=options["plan"],
        starts_on=options["day"],
        now=timezone.now(),
    )
    return f"{options['tenant']} has the plan {options['plan']} from {options['day']}, 00:00 UTC."


def _set_profile(options: dict[str, Any]) -> str:
    with _report_unreadable_file(options["file"]):
        profile = msgspec.json.decode(options["file"].read_bytes(), type=_ProfileFile)
    set_billing_profile(
        actor=_read_actor(options), customer=profile.customer, tax=profile.tax, now=timezone.now()
    )
    return f"Future invoices of {options['tenant']} are addressed to {profile.customer.name}."


def _grant_credit(options: dict[str, Any]) -> str:
    grant_credit(
        actor=_read_actor(options),
        amount_micros=options["amount"],
        reason=options["reason"],
        now=timezone.now(),
    )
    return "The next invoice uses this credit first."


def _issue_invoices(options: dict[str, Any]) -> str:
    tenant_id = _read_actor(options).tenant_id
    # The earlier of this machine's time and the database's time. So if one of the clocks is ahead,
    # no month is invoiced before its end.
    now = choose_billing_time(timezone.now())
    rate_tenant(tenant_id, now=now)
    issued = issue_due_invoices(tenant_id, now=now)
    return f"Issued: {', '.join(issued)}." if issued else "No invoice is due."


def _issue_credit_note(options: dict[str, Any]) -> str:
    cents, rest = divmod(options["amount"], MICROS_PER_CENT)
    if rest:
        raise InvalidValue("amount", "Enter whole cents.")
    note = issue_credit_note(
        actor=_read_actor(options),
        number=options["number"],
        net_cents=cents,
        reason=options["reason"],
        # As for invoices: the note's date and month must not be in the future.
        now=choose_billing_time(timezone.now()),
    )
    return f"Issued: {note.document.head.number}."


_COMMANDS = {
    "plan": _create_plan,
    "price": _add_price,
    "subscribe": _subscribe_tenant,
    "profile": _set_profile,
    "credit": _grant_credit,
    "invoice": _issue_invoices,
    "credit-note": _issue_credit_note,
}


def _read_actor(options: dict[str, Any]) -> Actor:
    tenant_id = find_tenant(slug=options["tenant"])
    if tenant_id is None:
        raise CommandError(f"There is no tenant {options['tenant']}.")
    return build_system_actor(tenant_id)


def _read_money(text: str) -> int:
    """Return an amount in micros.

    Raises ArgumentTypeError if the text is not an amount, or has more than six decimals.
    """
    try:
        micros = Decimal(text) * MICROS
    except InvalidOperation:
        micros = Decimal("NaN")
    if not micros.is_finite():  # Decimal also accepts texts such as "NaN" and "Infinity"
        raise argparse.ArgumentTypeError(f"{text} is not an amount of money.")
    if micros != int(micros):
        raise argparse.ArgumentTypeError(f"{text}: six decimals at most.")
    return int(micros)
