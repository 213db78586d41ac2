"""Operations that issue invoices and credit notes.

A document and its ledger transaction are written in the same database transaction.
"""

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

import msgspec
import structlog
from django.conf import settings

from caret.foundation.ids import TenantId, uuid7
from caret.foundation.postgres.tenant_scope import tenant_scope
from tenants.base.billing_periods import (
    ONE_DAY,
    choose_booking_month,
    start_of_day,
    start_of_next_month,
    utc_day,
)
from tenants.base.errors import Conflict, InvalidValue, NotFound
from tenants.base.money import MICROS_PER_CENT, to_cents
from tenants.base.validation.text import parse_reason
from tenants.base.worker.failure_log import FailureLog
from tenants.billing.invoices.billing_profile import (
    read_bank_account,
    read_billing_profile,
    read_issuer,
)
from tenants.billing.invoices.document import (
    DocumentKind,
    InvoiceHeader,
    LedgerTotals,
    UsageLine,
    build_document,
    build_lines,
    compute_incremental_tax,
    compute_tax,
    encode_document,
)
from tenants.billing.invoices.queries import (
    InvoiceView,
    build_invoice_view,
    find_invoice,
    read_usage_lines,
)
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.credits import read_credit_balance
from tenants.billing.ledger.operations import (
    Posting,
    SourceKind,
    TransactionDraft,
    TransactionSource,
    lock_billing,
    post_transaction,
)
from tenants.billing.ledger.queries import find_open_month
from tenants.billing.rating.clock import choose_billing_time
from tenants.billing.rating.operations import rate_tenant
from tenants.models import BillingState, Invoice, LedgerTransaction, Tenant
from tenants.security.audit.operations import record_change
from tenants.security.authorization.actor import Actor, build_system_actor
from tenants.security.authorization.directory import list_tenants
from tenants.usage.ingestion.batch_numbers import read_latest_batch

# The shortest time from the end of a month to its invoice. Usage that arrives after the invoice is
# on a later one.
GRACE: Final = timedelta(hours=6)
# A memo has at most 250 characters, and also contains the document's number.
_MAX_REASON_CHARS: Final = 150
_USAGE_SOURCES: Final = (SourceKind.USAGE, SourceKind.SEATS)

log = structlog.get_logger(__name__)


def issue_due_invoices_of_all_tenants(*, now: datetime) -> None:
    """Issue the due invoices of all tenants. Concurrent runs wait for a tenant's lock.

    The failure of one tenant is logged, and does not stop the run.
    """
    now = choose_billing_time(now)
    for tenant_id in list_tenants().values():
        # Without a plan (NotFound), there is nothing to invoice.
        with FailureLog("billing.not_invoiced", tenant_id=tenant_id), suppress(NotFound):
            for number in issue_due_invoices(tenant_id, now=now):
                log.info("billing.invoiced", tenant_id=tenant_id, number=number)


@dataclass(frozen=True, slots=True)
class _InvoiceDraft:
    """A new invoice or credit note."""

    head: InvoiceHeader
    sums: LedgerTotals
    month: date  # by its first day; of a credit note: the month in which it is booked
    corrects: int | None  # number of the corrected invoice; None: the draft is an invoice


def issue_due_invoices(tenant_id: TenantId, *, now: datetime) -> list[str]:
    """Issue a tenant's invoices for months that are over, and return their numbers as printed.

    A month without usage and seats has no invoice. `now` must come from choose_billing_time.

    All usage that has arrived before this call is rated first. Usage that arrives during the call
    does not delay the invoices, because a busy tenant might then never get one.

    Raises NotFound for a tenant without a plan.
    """
    with tenant_scope(tenant_id):
        newest_batch = read_latest_batch(tenant_id)
    rate_tenant(tenant_id, now=now, until_batch=newest_batch)
    with tenant_scope(tenant_id):
        state = lock_billing(tenant_id)
        return [
            _issue_invoice(state, month, now)
            for month in _list_due_months(state, newest_batch, now)
        ]


def issue_credit_note(
    *, actor: Actor, number: int, net_cents: int, reason: str, now: datetime
) -> InvoiceView:
    """Issue a credit note that corrects the invoice `number` by `net_cents` and the tax on them.

    Raises Forbidden, InvalidValue, NotFound, Conflict.
    """
    actor.require_platform()
    reason = parse_reason(reason)
    if not reason or len(reason) > _MAX_REASON_CHARS or not reason.isprintable():
        raise InvalidValue(
            "reason",
            "Enter a reason of 1 to {most} characters on one line.",
            most=_MAX_REASON_CHARS,
        )
    with tenant_scope(actor.tenant_id):
        state = lock_billing(actor.tenant_id)
        invoice = find_invoice(actor=actor, number=number)
        if not 0 < net_cents <= _compute_correctable_cents(invoice):
            raise Conflict(
                "You can correct at most {cents} cents of this invoice.",
                cents=_compute_correctable_cents(invoice),
            )
        month = choose_booking_month(utc_day(now), open_month=find_open_month(state), now=now)
        head = _build_header(state, DocumentKind.CREDIT_NOTE, month, now)
        head = msgspec.structs.replace(
            head,
            corrects=invoice.document.head.number,
            reason=reason,
            tax=invoice.document.head.tax,
        )
        tax_cents = compute_incremental_tax(net_cents, after=invoice.corrected_cents, tax=head.tax)
        sums = LedgerTotals(subtotal_cents=-net_cents, credit_cents=0, tax_cents=-tax_cents)
        draft = _InvoiceDraft(head, sums, month, corrects=number)
        _book_credit_note(state, draft, now)
        row = _insert_invoice(state, draft, usage_lines=(), now=now)
        return build_invoice_view(row, usage_lines=())


def _list_due_months(state: BillingState, newest_batch: int, now: datetime) -> list[date]:
    """Return the months to invoice: not invoiced yet, with usage or seats, and complete.

    Return no month until usage is rated up to the batch number `newest_batch`.
    """
    if state.rated_batch < newest_batch:
        return []
    months = LedgerTransaction.objects.filter(
        tenant_id=state.tenant_id, source_kind__in=_USAGE_SOURCES, month__gte=find_open_month(state)
    )
    used_months = sorted(set(months.values_list("month", flat=True)))
    return [month for month in used_months if _is_month_complete(state, month, now)]


def _is_month_complete(state: BillingState, month: date, now: datetime) -> bool:
    """Return whether the month ended at least GRACE ago, and all its seats are posted."""
    next_month = start_of_next_month(month)
    last_posted_day = state.seats_booked_on
    are_seats_posted = last_posted_day is not None and last_posted_day >= next_month - ONE_DAY
    return are_seats_posted and now >= start_of_day(next_month) + GRACE


def _issue_invoice(state: BillingState, month: date, now: datetime) -> str:
    tenant_id = TenantId(str(state.tenant_id))
    usage_lines = read_usage_lines(tenant_id, month)
    head = _build_header(state, DocumentKind.INVOICE, month, now)
    subtotal_cents = sum(line.amount_cents for line in build_lines(usage_lines))
    credit_cents = max(0, min(to_cents(read_credit_balance(tenant_id)), subtotal_cents))
    tax_cents = compute_tax(subtotal_cents - credit_cents, head.tax)
    sums = LedgerTotals(subtotal_cents, credit_cents, tax_cents)
    draft = _InvoiceDraft(head, sums, month, corrects=None)
    _book_invoice(state, draft, sum(line.amount_micros for line in usage_lines), now)
    state.invoiced_month = month
    _insert_invoice(state, draft, usage_lines, now)
    return head.number


def _build_header(
    state: BillingState, kind: DocumentKind, month: date, now: datetime
) -> InvoiceHeader:
    """Return a header with the next number, and set `state.last_invoice_number`.

    _insert_invoice saves `state`. A failure of the transaction also undoes the increase of the
    number, so there are no gaps.
    """
    tenant_id = TenantId(str(state.tenant_id))
    state.last_invoice_number += 1
    customer, tax = read_billing_profile(tenant_id)
    slug = Tenant.objects.values_list("slug", flat=True).get(id=tenant_id)
    issued_on = utc_day(now)
    return InvoiceHeader(
        number=f"{slug.upper()}-{state.last_invoice_number:06}",
        kind=kind,
        corrects="",
        month=month.isoformat(),
        issued_on=issued_on.isoformat(),
        due_on=(issued_on + timedelta(days=settings.INVOICE_DUE_DAYS)).isoformat(),
        currency=state.currency,
        issuer=read_issuer(),
        customer=customer,
        tax=tax,
        payment=tuple(settings.INVOICE_PAYMENT) if kind is DocumentKind.INVOICE else (),
        reason="",
        bank=read_bank_account() if kind is DocumentKind.INVOICE else None,
    )


def _book_invoice(
    state: BillingState, draft: _InvoiceDraft, used_micros: int, now: datetime
) -> None:
    sums = draft.sums
    # Debits are positive, and credits are negative. The sum of all postings is 0.
    postings = [
        Posting(LedgerAccountCode.RECEIVABLE, sums.total_cents * MICROS_PER_CENT),
        Posting(LedgerAccountCode.CREDITS, sums.credit_cents * MICROS_PER_CENT),
        Posting(LedgerAccountCode.TAX, -sums.tax_cents * MICROS_PER_CENT),
        Posting(LedgerAccountCode.UNBILLED, -used_micros),
        Posting(LedgerAccountCode.ROUNDING, used_micros - sums.subtotal_cents * MICROS_PER_CENT),
    ]
    _post_document(state, draft, SourceKind.INVOICE, postings, now)


def _book_credit_note(state: BillingState, draft: _InvoiceDraft, now: datetime) -> None:
    sums = draft.sums
    # The sums of a credit note are negative, so the signs are as in _book_invoice.
    postings = [
        Posting(LedgerAccountCode.RECEIVABLE, sums.total_cents * MICROS_PER_CENT),
        Posting(LedgerAccountCode.CORRECTIONS, -sums.subtotal_cents * MICROS_PER_CENT),
        Posting(LedgerAccountCode.TAX, -sums.tax_cents * MICROS_PER_CENT),
    ]
    _post_document(state, draft, SourceKind.CREDIT_NOTE, postings, now)


def _post_document(
    state: BillingState,
    draft: _InvoiceDraft,
    kind: SourceKind,
    postings: list[Posting],
    now: datetime,
) -> None:
    last_day_of_month = start_of_next_month(draft.month) - ONE_DAY
    draft_transaction = TransactionDraft(
        source=TransactionSource(kind, str(state.last_invoice_number)),
        day=utc_day(now) if kind is SourceKind.CREDIT_NOTE else last_day_of_month,
        month=draft.month,
        memo=f"{draft.head.number} {draft.head.reason}".strip(),
        postings=[posting for posting in postings if posting.amount_micros],
    )
    post_transaction(state, draft_transaction, now=now)


def _insert_invoice(
    state: BillingState, draft: _InvoiceDraft, usage_lines: Sequence[UsageLine], now: datetime
) -> Invoice:
    """Insert the row of an invoice or credit note, save `state`, and write to the audit log."""
    document = build_document(draft.head, usage_lines, draft.sums)
    state.save(update_fields=["last_invoice_number", "invoiced_month"])
    row = Invoice.objects.create(
        tenant_id=state.tenant_id,
        number=state.last_invoice_number,
        id=uuid7(),
        name=draft.head.number,
        kind=draft.head.kind,
        month=draft.month,
        corrects=draft.corrects,
        head=msgspec.to_builtins(draft.head),
        total_micros=draft.sums.total_cents * MICROS_PER_CENT,
        digest=hashlib.sha256(encode_document(document)).digest(),
        created_at=now,
    )
    record_change(
        actor=build_system_actor(TenantId(str(state.tenant_id))),
        action=f"billing.{draft.head.kind.value}_issued",
        target=f"invoice:{draft.head.number}",
        change=(None, {"total_micros": row.total_micros, "currency": state.currency}),
        reason=draft.head.reason,
        now=now,
    )
    return row


def _compute_correctable_cents(invoice: InvoiceView) -> int:
    """Return the net amount that further credit notes can correct; 0 for a credit note."""
    if invoice.kind is not DocumentKind.INVOICE:
        return 0
    document = invoice.document
    return document.subtotal_cents - document.credit_cents - invoice.corrected_cents
