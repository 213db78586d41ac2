"""Content of completions by consent: the tenant allows, then each user agrees, and both can end it.

wordings.py      what exactly is agreed to, by version
consent.py       what receipts and a policy mean together (pure)
operations.py    agree, withdraw; each leaves a receipt
queries.py       who has agreed; receipts
"""
