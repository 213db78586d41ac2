"""Billing: usage is rated into a ledger, limited by budgets and invoiced.

    usage records > rating > ledger > invoices
                        |        `----> Stripe (an adapter)
                        `> budget spending > alerts

Money is in whole micros: millionths of a currency's unit. A billing period is a UTC month.
"""
