"""The accounts of a tenant's ledger, and what their signs mean: a debit is above 0."""

from enum import StrEnum


class LedgerAccountCode(StrEnum):
    UNBILLED = "unbilled"  # asset: used and not yet invoiced
    RECEIVABLE = "receivable"  # asset: invoiced
    CREDITS = "credits"  # liability: granted to the tenant and not yet used up
    TAX = "tax"  # liability
    SEATS = "revenue.seats"
    TOKENS = "revenue.tokens"
    CORRECTIONS = "revenue.corrections"  # what credit notes take back
    ROUNDING = "revenue.rounding"  # between micros and whole cents
    PROMOTIONS = "expense.promotions"  # what credits cost the platform
