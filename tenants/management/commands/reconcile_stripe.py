"""`manage.py reconcile_stripe --month 2026-10`: compare the ledger with Stripe.

Fails if a meter differs from the ledger, or if some of its events are waiting or stuck.
"""

import argparse
from datetime import date
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from caret.foundation.management_command import NoSystemChecksCommand
from tenants.billing.stripe.client import HttpStripe
from tenants.billing.stripe.port import StripeFailed
from tenants.billing.stripe.reconciliation import reconcile_month
from tenants.security.authorization.directory import list_tenants

_COLUMNS = "{:<24} {:<36} {:>16} {:>16} {:>16} {:>8} {:>6}"


class Command(NoSystemChecksCommand):
    help = (
        "Compare a month's tokens in the ledger with Stripe's meters. The columns ledger, sent and"
        " Stripe are tokens. The columns waiting and stuck are numbers of events that have not"
        " arrived: waiting events will still be sent, stuck events will not."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--month", required=True, type=_read_month, help="month to compare, such as 2026-10"
        )
        parser.add_argument("--tenant", help="slug of one tenant; default: all tenants")

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.STRIPE_KEY is None:
            raise CommandError("Set CARET_STRIPE_KEY: there is no Stripe account to compare with.")
        tenants = list_tenants()
        if options["tenant"] is not None and options["tenant"] not in tenants:
            raise CommandError(f"There is no tenant {options['tenant']}.")
        stripe = HttpStripe(settings.STRIPE_URL, settings.STRIPE_KEY)
        headers = ("tenant", "meter", "ledger", "sent", "Stripe", "waiting", "stuck")
        self.stdout.write(_COLUMNS.format(*headers))
        num_unreconciled = 0
        for slug, tenant_id in tenants.items():
            if options["tenant"] not in (None, slug):
                continue
            try:
                comparisons = reconcile_month(stripe, tenant_id, month=options["month"])
            except StripeFailed as error:
                raise CommandError(f"Stripe: {error}") from error
            for comparison in comparisons:
                num_unreconciled += not comparison.is_reconciled
                row = (
                    comparison.booked,
                    comparison.sent,
                    comparison.stripe_quantity,
                    comparison.waiting,
                    comparison.stuck,
                )
                self.stdout.write(_COLUMNS.format(slug, comparison.event_name, *row))
        if num_unreconciled:
            raise CommandError(
                f"{num_unreconciled} meters differ from the ledger, or have events that have not"
                " arrived: see the table."
            )
        self.stdout.write("Ledger and Stripe agree.")


def _read_month(text: str) -> date:
    try:
        return date.fromisoformat(f"{text}-01")
    except ValueError:
        raise argparse.ArgumentTypeError("write a month such as 2026-10") from None
