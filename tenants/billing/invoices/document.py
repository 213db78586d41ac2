"""An invoice as a document: a stored header, and lines that are built from the ledger. Pure.

The same ledger rows in any order give the same bytes. Each line is rounded to whole cents, and the
subtotal is the sum of the rounded lines, so that the printed figures add up. The ledger has an
entry for the difference that rounding makes.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any, Final

import msgspec

from tenants.base.billing_periods import start_of_month, start_of_next_month
from tenants.base.money import MICROS_PER_CENT, divide_half_up, to_cents
from tenants.billing.pricing import PricedTokenKind, parse_line

SCHEMA: Final = 1  # version of the document's format
SEATS: Final = "seats"  # code of the line for seats
_KINDS: Final = {
    PricedTokenKind.PROMPT: "prompt tokens",
    PricedTokenKind.CACHED_PROMPT: "prompt tokens from the cache",
    PricedTokenKind.GENERATED: "generated tokens",
}


class DocumentKind(StrEnum):
    INVOICE = "invoice"
    CREDIT_NOTE = "credit_note"


# When a field is added, the bytes of documents that are already stored must stay the same. So a new
# field has a plain default, and the encoding omits a field with its plain default. The original
# fields have default factories, so that they are always encoded.
class InvoiceParty(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    name: str
    # One string for each line.
    address: tuple[str, ...] = msgspec.field(default_factory=lambda: ())
    tax_id: str = msgspec.field(default_factory=lambda: "")
    email: str = msgspec.field(default_factory=lambda: "")
    country: str = ""  # ISO 3166-1 alpha-2; "": unknown


class BankAccount(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    iban: str
    bic: str  # "": none
    bank: str  # name; "": none


class InvoiceTax(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str  # such as VAT; "": no tax
    basis_points: int  # hundredths of a percent; 0: no tax


class InvoiceHeader(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The part of a document that is not in the ledger, stored as it was issued.

    Dates are in ISO format, such as 2026-11-01.
    """

    number: str
    kind: DocumentKind
    corrects: str  # number of the corrected invoice; "": this document is an invoice
    month: str  # its first day
    issued_on: str
    due_on: str
    currency: str
    issuer: InvoiceParty
    customer: InvoiceParty
    tax: InvoiceTax
    payment: tuple[str, ...]  # payment instructions, one string for each line
    reason: str  # of a credit note; "" for an invoice
    bank: BankAccount | None = None  # None: no account, or a credit note


@dataclass(frozen=True, slots=True)
class UsageLine:
    """The sum of the ledger entries with the same line, day and price."""

    line: str  # its code: `seats`, or a code of tenants.billing.pricing.TokenLine
    day: date  # of the usage
    quantity: int  # tokens, or seats of the day
    price_micros: int  # of a million tokens, or of a seat for a month
    amount_micros: int  # positive: the customer pays it


@dataclass(frozen=True, slots=True)
class LedgerTotals:
    """The amounts of the ledger for a document. For a credit note, they are negative."""

    subtotal_cents: int
    credit_cents: int  # credits that were used
    tax_cents: int

    @property
    def total_cents(self) -> int:
        return self.subtotal_cents - self.credit_cents + self.tax_cents


class InvoiceLine(msgspec.Struct, frozen=True):
    code: str  # `seats`, `correction`, or a code of tenants.billing.pricing.TokenLine
    description: str
    # First day of the month of usage. A usage record that came late may be in a later invoice.
    used_in: str
    quantity: int  # in `unit`
    unit: str  # "": a correction has none
    price_micros: int  # of `price_for` units; for seats: of a seat for a month
    price_for: int
    amount_cents: int


class InvoiceDocument(msgspec.Struct, frozen=True):
    schema: int
    head: InvoiceHeader
    period_from: str  # first day of the month (UTC)
    period_until: str  # the day after the month's last day
    lines: tuple[InvoiceLine, ...]
    subtotal_cents: int
    credit_cents: int
    tax_cents: int
    total_cents: int


class InvoiceMismatch(Exception):
    """The sum of the lines differs from the subtotal in the ledger."""


def build_document(
    head: InvoiceHeader, usage_lines: Iterable[UsageLine], sums: LedgerTotals
) -> InvoiceDocument:
    """Build a document. Raises InvoiceMismatch.

    A credit note has a single line, so `usage_lines` are used only for an invoice.
    """
    month = date.fromisoformat(head.month)
    lines = (
        build_lines(usage_lines)
        if head.kind is DocumentKind.INVOICE
        else (_build_correction(head, sums),)
    )
    if sum(line.amount_cents for line in lines) != sums.subtotal_cents:
        raise InvoiceMismatch
    return InvoiceDocument(
        schema=SCHEMA,
        head=head,
        period_from=month.isoformat(),
        period_until=start_of_next_month(month).isoformat(),
        lines=lines,
        subtotal_cents=sums.subtotal_cents,
        credit_cents=sums.credit_cents,
        tax_cents=sums.tax_cents,
        total_cents=sums.total_cents,
    )


def encode_document(document: InvoiceDocument) -> bytes:
    """Encode a document as JSON with sorted keys."""
    return msgspec.json.encode(document, order="sorted")


def build_lines(usage_lines: Iterable[UsageLine]) -> tuple[InvoiceLine, ...]:
    """Build a line for each code, month of usage and price.

    Seats are first, then tokens in the order of tier, model and kind.
    """
    groups: defaultdict[tuple[str, str, int], list[UsageLine]] = defaultdict(list)
    for usage_line in usage_lines:
        groups[
            usage_line.line, start_of_month(usage_line.day).isoformat(), usage_line.price_micros
        ].append(usage_line)
    sorted_groups = sorted(groups.items(), key=lambda group: _sort_key(*group[0]))
    return tuple(_build_line(*key, entries) for key, entries in sorted_groups)


def compute_tax(net_cents: int, tax: InvoiceTax) -> int:
    """Return the tax on an amount, in cents, halves rounded away from zero."""
    return divide_half_up(net_cents * tax.basis_points, 10_000)


def compute_incremental_tax(net_cents: int, *, after: int, tax: InvoiceTax) -> int:
    """Return the tax of a further correction by `net_cents`, after corrections by `after` cents.

    So if credit notes correct the whole invoice, the sum of their taxes is the invoice's tax. It
    does not matter how the amount is divided among the credit notes.
    """
    return compute_tax(after + net_cents, tax) - compute_tax(after, tax)


def _sort_key(code: str, used_in: str, price_micros: int) -> tuple[Any, ...]:
    line = parse_line(code)
    # The empty tuple sorts seats before all tokens.
    return ((), used_in, price_micros) if line is None else (line.sort_key, used_in, price_micros)


def _build_line(
    code: str, used_in: str, price_micros: int, entries: list[UsageLine]
) -> InvoiceLine:
    is_seats = code == SEATS
    return InvoiceLine(
        code=code,
        description="Seats, billed daily" if is_seats else _describe_line(code),
        used_in=used_in,
        quantity=sum(entry.quantity for entry in entries),
        unit="seat days" if is_seats else "tokens",
        price_micros=price_micros,
        price_for=1 if is_seats else 1_000_000,
        amount_cents=to_cents(sum(entry.amount_micros for entry in entries)),
    )


def _describe_line(code: str) -> str:
    line = parse_line(code)
    assert line is not None
    tier = f"{line.tier.value.capitalize()} tier"
    return ", ".join(filter(None, (tier, line.model, _KINDS[line.kind])))


def _build_correction(head: InvoiceHeader, sums: LedgerTotals) -> InvoiceLine:
    """Build the line of a credit note."""
    return InvoiceLine(
        code="correction",
        description=f"Correction of invoice {head.corrects}: {head.reason}",
        used_in=head.month,
        quantity=1,
        unit="",
        price_micros=sums.subtotal_cents * MICROS_PER_CENT,
        price_for=1,
        amount_cents=sums.subtotal_cents,
    )
