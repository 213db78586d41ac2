"""Retrieval as the gateway sees it: what is known by now, and errands in the background.

memory.py          what was found, for a while
outbox.py          files and questions on their way, bounded
snippets.py        the port's implementation: looks into the memory, fills the outbox
courier.py         empties the outbox into Redis and brings the answers back
redaction.py       secrets leave a text before it leaves the gateway
retrieval.py       all of them together
"""
