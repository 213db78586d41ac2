"""One person in a tenant: what is held about him, handed out; and how it goes.

sources.py        where something of a person is, and what of it is shown to him
bundle.py         all of it as a ZIP, with a signed manifest
verification.py   verifies that manifest offline (pure)
operations.py     demands that somebody is erased, or all of a tenant: keys go at once
noted.py          ... and notes it where no backup of the database is
again.py          demands after a restore what was demanded since the backup
erasing.py        ... and erases, in transactions that survive being killed
pseudonyms.py     another id where counts are kept
identity.py       nothing where somebody is known
leftovers.py      what a shredded tenant has beside its people
certificate.py    what is said of it afterwards
queries.py        finds people as operators name them, and what became of erasures
"""
