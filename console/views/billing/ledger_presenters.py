"""Presentation of the ledger's transactions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from console.views.billing.presenters import name_of
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.operations import SourceKind
from tenants.billing.ledger.queries import LedgerEntryView, TransactionView

# The page shows the day beside it. Documents have their number as title, corrections their reason.
_TITLES: Final[dict[str, Promise]] = {
    SourceKind.USAGE: _("Tokens"),
    SourceKind.SEATS: _("Seats"),
    SourceKind.CREDIT: _("Credit granted"),
}


@dataclass(frozen=True, slots=True)
class EntrySide:
    entry: LedgerEntryView
    account: str
    what: str  # product that was used; "": the other side

    @property
    def debit_micros(self) -> int | None:
        """The amount of a debit; None for a credit."""
        return self.entry.amount_micros if self.entry.amount_micros > 0 else None

    @property
    def credit_micros(self) -> int | None:
        return -self.entry.amount_micros if self.entry.amount_micros <= 0 else None


@dataclass(frozen=True, slots=True)
class TransactionRow:
    transaction: TransactionView
    title: str
    amount_micros: int  # total of the debits, which equals the credits
    sides: tuple[EntrySide, ...]
    document: int | None  # number of the invoice or credit note; None: neither


def row_of(
    transaction: TransactionView, accounts: Mapping[LedgerAccountCode, Promise]
) -> TransactionRow:
    return TransactionRow(
        transaction=transaction,
        title=str(_TITLES.get(transaction.source_kind, transaction.memo)),
        amount_micros=sum(max(0, each.amount_micros) for each in transaction.entries),
        sides=tuple(_to_side(each, accounts) for each in transaction.entries),
        document=_document_number(transaction),
    )


def _to_side(entry: LedgerEntryView, accounts: Mapping[LedgerAccountCode, Promise]) -> EntrySide:
    return EntrySide(
        entry,
        str(accounts[LedgerAccountCode(entry.account)]),
        name_of(entry.line) if entry.line else "",
    )


def _document_number(transaction: TransactionView) -> int | None:
    issued = transaction.source_kind in (SourceKind.INVOICE, SourceKind.CREDIT_NOTE)
    return int(transaction.source_id) if issued else None
