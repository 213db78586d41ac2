"""The ledger over REST: what was booked, and nothing that changes it."""

import datetime
import uuid

from ninja import Query, Router

from console.api.authentication import AuthenticatedRequest, actor_of, documents_permissions
from console.api.base_schema import ResponseSchema
from console.api.pagination import PageQuery, PageResponse
from tenants.base.money import Currency
from tenants.base.pagination import Page
from tenants.base.permissions import Permission
from tenants.billing.ledger.accounts import LedgerAccountCode
from tenants.billing.ledger.queries import LedgerFilter, TransactionView, page_of_ledger

router = Router(tags=["ledger"])


class LedgerEntryResponse(ResponseSchema):
    account: str
    amount_micros: int  # above 0: debit, below 0: credit; of a transaction together 0
    line: str  # what was used, e.g. fast.prompt or seats; "": the other side
    quantity: int
    price_micros: int  # for a million tokens, or a seat's month


class TransactionResponse(ResponseSchema):
    id: uuid.UUID
    source_kind: str  # usage, seats, credit, invoice or credit_note
    source_id: str
    currency: Currency
    day: datetime.date  # of what was used (UTC)
    month: datetime.date  # in which it is billed, by its first day
    memo: str
    created_at: datetime.datetime
    entries: list[LedgerEntryResponse]


class LedgerPage(PageResponse):
    rows: list[TransactionResponse]  # newest first


class LedgerQuery(PageQuery):
    month: datetime.date | None = None  # by its first day; null: all
    account: LedgerAccountCode | None = None  # one of whose entries is on it; null: all
    first: datetime.date | None = None  # days of what was used, both included; null: all
    last: datetime.date | None = None


@router.get(
    "",
    response=LedgerPage,
    summary="The ledger's transactions with their entries.",
    openapi_extra=documents_permissions(Permission.READ_BILLING),
)
def list_all(request: AuthenticatedRequest, asked: Query[LedgerQuery]) -> Page[TransactionView]:
    return page_of_ledger(
        actor=actor_of(request),
        limit=asked.limit,
        cursor=asked.cursor,
        asked=LedgerFilter(asked.month, asked.account, asked.first, asked.last),
    )
