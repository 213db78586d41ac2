"""What is paid: the plan, this month so far, the ledger, invoices, to whom they are made out."""
