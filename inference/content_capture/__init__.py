"""Content of completions, for users who have agreed that it is kept; requests never wait for it.

content.py     what of a completion may be kept
outbox.py      what waits to be sent, bounded
courier.py     takes secrets out, seals, and brings it to Redis
"""
