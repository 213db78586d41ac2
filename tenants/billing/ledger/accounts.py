"""The accounts of a tenant's ledger. A debit is positive."""

from enum import StrEnum


class LedgerAccountCode(StrEnum):
    UNBILLED = "unbilled"  # asset: usage that is not invoiced yet
    RECEIVABLE = "receivable"  # asset: invoiced
    CREDITS = "credits"  # liability: credits that the tenant has not used yet
    TAX = "tax"  # liability
    SEATS = "revenue.seats"
    TOKENS = "revenue.tokens"
    CORRECTIONS = "revenue.corrections"  # amounts of credit notes
    ROUNDING = "revenue.rounding"  # differences between micros and whole cents
    PROMOTIONS = "expense.promotions"  # the platform's cost of credits
