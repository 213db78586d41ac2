"""Operations that post to the ledger: balanced transactions, at most one for each source."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

from caret.foundation.ids import TenantId, uuid7
from tenants.base.errors import NotFound
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.models import BillingState, LedgerAccount, LedgerEntry, LedgerTransaction


class SourceKind(StrEnum):
    """The kind of a source. The comments show the source's ID."""

    USAGE = "usage"  # first and last batch, and the day: 1-64:2026-11-01
    SEATS = "seats"  # the day: 2026-11-01
    CREDIT = "credit"  # a UUID of the grant
    INVOICE = "invoice"  # the invoice's number: 7
    CREDIT_NOTE = "credit_note"  # the credit note's number: 8


@dataclass(frozen=True, slots=True)
class TransactionSource:
    """The cause of a transaction. A source has at most one transaction."""

    kind: SourceKind
    id: str


@dataclass(frozen=True, slots=True)
class Posting:
    """One entry of a transaction; see LedgerEntry."""

    account: LedgerAccountCode
    amount_micros: int  # positive: debit; negative: credit
    line: str = ""  # such as `seats` or `fast.prompt`; "": not an entry of usage
    quantity: int = 0  # tokens or seats
    running: int = 0  # the total quantity of the day and line, including this entry
    price_micros: int = 0  # for a million tokens, or for a seat's month


@dataclass(frozen=True, slots=True)
class TransactionDraft:
    """A transaction to post; see LedgerTransaction."""

    source: TransactionSource
    day: date  # of the usage, seats, credit or document
    month: date  # the invoice's month, by its first day
    memo: str
    postings: Sequence[Posting]  # must balance, or Postgres rejects them


def lock_billing(tenant_id: TenantId) -> BillingState:
    """Lock the tenant's ledger until the commit, and return the progress of its billing.

    Must run inside the tenant's scope. Raises NotFound for a tenant without a plan.
    """
    state = BillingState.objects.select_for_update().filter(tenant_id=tenant_id).first()
    if state is None:
        raise NotFound("The tenant has no plan.")
    return state


def post_transaction(state: BillingState, draft: TransactionDraft, *, now: datetime) -> UUID | None:
    """Post a transaction and return its ID, or None if its source was posted before.

    The caller must hold the lock of lock_billing.
    """
    return post_transactions(state, [draft], now=now).get(draft.source)


def post_transactions(
    state: BillingState, drafts: Sequence[TransactionDraft], *, now: datetime
) -> dict[TransactionSource, UUID]:
    """Post transactions of one kind, except those whose source was posted before.

    Return the IDs of the new ones. The caller must hold the lock of lock_billing. Up to four
    queries.
    """
    posted_ids = _read_posted_ids(state, [draft.source for draft in drafts])
    new_drafts = [draft for draft in drafts if draft.source.id not in posted_ids]
    new_ids = {draft.source: uuid7() for draft in new_drafts}
    LedgerTransaction.objects.bulk_create(
        LedgerTransaction(
            tenant_id=state.tenant_id,
            id=new_ids[draft.source],
            source_kind=draft.source.kind,
            source_id=draft.source.id,
            currency=state.currency,
            day=draft.day,
            month=draft.month,
            memo=draft.memo,
            created_at=now,
        )
        for draft in new_drafts
    )
    _open_accounts(state, new_drafts)
    LedgerEntry.objects.bulk_create(
        LedgerEntry(
            tenant_id=state.tenant_id,
            transaction_id=new_ids[draft.source],
            position=position,
            account=posting.account,
            currency=state.currency,
            amount_micros=posting.amount_micros,
            line=posting.line,
            day=draft.day,
            quantity=posting.quantity,
            running=posting.running,
            price_micros=posting.price_micros,
        )
        for draft in new_drafts
        for position, posting in enumerate(draft.postings, start=1)
    )
    return new_ids


def _read_posted_ids(state: BillingState, sources: Sequence[TransactionSource]) -> set[str]:
    """Return the IDs of these sources, all of one kind, that have a transaction."""
    kinds = {source.kind for source in sources}
    transactions = LedgerTransaction.objects.filter(
        tenant_id=state.tenant_id,
        source_kind__in=kinds,
        source_id__in=[source.id for source in sources],
    )
    return set(transactions.values_list("source_id", flat=True))


def _open_accounts(state: BillingState, drafts: Sequence[TransactionDraft]) -> None:
    """Insert the accounts of these transactions that the tenant does not have yet."""
    codes = {posting.account.value for draft in drafts for posting in draft.postings}
    LedgerAccount.objects.bulk_create(
        [
            LedgerAccount(tenant_id=state.tenant_id, code=code, currency=state.currency)
            for code in sorted(codes)
        ],
        ignore_conflicts=True,
    )
