"""Billing: what was used is rated into a ledger, budgets bound it, invoices are made of it.

    usage records > rating > ledger > invoices
                      |        `----> Stripe (an adapter)
                      `> spending of budgets > alerts

Money is whole micros (millionths of a currency's unit); a period is a half-open UTC month.
"""
