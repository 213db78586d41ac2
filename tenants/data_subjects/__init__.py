"""One person in a tenant: what is held about him, handed out; and how it goes.

sources.py        where something of a person is, and what of it is shown to him
bundle.py         all of it as a ZIP, with a signed manifest
verification.py   verifies that manifest offline (pure)
queries.py        finds people as operators name them
"""
