"""The ledger over REST, read-only."""

import datetime
import uuid

from ninja import Query, Router

from console.api.authentication import AuthenticatedRequest, actor_of, documents_permissions
from console.api.base_schema import ResponseSchema
from console.api.pagination import Items, PageQuery, PageResponse
from tenants.base.money import Currency
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.queries import LedgerFilter, TransactionView, read_page_of_ledger

router = Router(tags=["ledger"])


class LedgerEntryResponse(ResponseSchema):
    account: str
    amount_micros: int  # debit above 0, credit below 0; a transaction's sum is 0
    line: str  # what is charged: seats, fast.prompt, fast.prompt.MODEL; "": the balancing entry
    quantity: int
    price_micros: int  # of a million tokens, or of a seat for a month


class TransactionResponse(ResponseSchema):
    id: uuid.UUID
    source_kind: str  # usage, seats, credit, invoice or credit_note
    source_id: str
    currency: Currency
    day: datetime.date  # day of use (UTC)
    month: datetime.date  # the billing month, given by its first day
    memo: str
    created_at: datetime.datetime
    entries: list[LedgerEntryResponse]


class LedgerPage(PageResponse):
    items: Items[TransactionResponse]  # newest first


class LedgerQuery(PageQuery):
    month: datetime.date | None = None  # given by its first day; null: all
    account: LedgerAccountCode | None = None  # transactions with an entry on it; null: all
    first: datetime.date | None = None  # days of use, both inclusive; null: all
    last: datetime.date | None = None


@router.get(
    "",
    response=LedgerPage,
    summary="List the ledger's transactions with their entries.",
    openapi_extra=documents_permissions(Permission.READ_BILLING),
)
def list_all(request: AuthenticatedRequest, query: Query[LedgerQuery]) -> Page[TransactionView]:
    return read_page_of_ledger(
        actor=actor_of(request),
        limit=query.limit,
        cursor=query.cursor,
        ledger_filter=LedgerFilter(query.month, query.account, query.first, query.last),
    )
