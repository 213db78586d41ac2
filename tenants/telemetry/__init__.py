"""Content of completions by consent: the tenant allows, then each user agrees, and both can end it.

wordings.py      what exactly is agreed to, by version
consent.py       what receipts and a policy mean together (pure)
receipts.py      each yes and no leaves one
operations.py    agree, withdraw
queries.py       who has agreed; receipts
ingest.py        content from the gateways' stream
keeping.py       ... sealed into the object store
erasure.py       ... and erased: by withdrawal, by retention
training.py      the data set that may train models
"""
