"""The accounts of a tenant's ledger. The amount of a debit is positive."""

from enum import StrEnum


class LedgerAccountCode(StrEnum):
    UNBILLED = "unbilled"  # asset: usage and seats that are not invoiced yet
    RECEIVABLE = "receivable"  # asset: totals of invoices, minus those of credit notes
    CREDITS = "credits"  # liability: credits that the tenant has not used yet
    TAX = "tax"  # liability: tax on invoices, minus that on credit notes
    SEATS = "revenue.seats"
    TOKENS = "revenue.tokens"
    CORRECTIONS = "revenue.corrections"  # amounts of credit notes before tax
    ROUNDING = "revenue.rounding"  # differences between micros and whole cents
    PROMOTIONS = "expense.promotions"  # the platform's cost of credits
