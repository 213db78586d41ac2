"""The ledger over REST, read-only."""

import datetime
import uuid

from ninja import Query, Router

from console.api.authentication import AuthenticatedRequest, actor_of, document_permissions
from console.api.base_schema import ResponseSchema
from console.api.pagination import Items, PageQuery, PageResponse
from tenants.base.money import Currency
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.queries import LedgerFilter, TransactionView, read_page_of_ledger

router = Router(tags=["ledger"])


class LedgerEntryResponse(ResponseSchema):
    account: str  # a LedgerAccountCode
    # Positive: debit. Negative: credit. The entries of a transaction add up to 0.
    amount_micros: int
    # The charged item: seats, fast.prompt or fast.prompt.MODEL. "": the entry charges no item.
    line: str
    quantity: int  # tokens or seats; 0: the entry charges no item
    price_micros: int  # of a million tokens, or of a seat for a month


class TransactionResponse(ResponseSchema):
    id: uuid.UUID
    source_kind: str  # usage, seats, credit, invoice or credit_note
    source_id: str  # identifies the cause among causes of its kind
    currency: Currency
    day: datetime.date  # day of use (UTC)
    month: datetime.date  # the billing month, given by its first day
    memo: str  # a text for people; may be ""
    created_at: datetime.datetime
    entries: list[LedgerEntryResponse]


class LedgerPage(PageResponse):
    items: Items[TransactionResponse]  # newest first


class LedgerQuery(PageQuery):
    month: datetime.date | None = None  # the billing month, given by its first day; null: all
    # Only transactions with an entry on this account. Null: all.
    account: LedgerAccountCode | None = None
    first: datetime.date | None = None  # the earliest day of use; null: unbounded
    last: datetime.date | None = None  # the latest day of use, inclusive; null: unbounded


@router.get(
    "",
    response=LedgerPage,
    summary="List the ledger's transactions with their entries.",
    openapi_extra=document_permissions(Permission.READ_BILLING),
)
def list_all(request: AuthenticatedRequest, query: Query[LedgerQuery]) -> Page[TransactionView]:
    return read_page_of_ledger(
        actor=actor_of(request),
        limit=query.limit,
        cursor=query.cursor,
        ledger_filter=LedgerFilter(query.month, query.account, query.first, query.last),
    )
