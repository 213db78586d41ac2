"""Content of completions, for users who consented to content capture. Requests never wait for it.

capture.py       selects what may be stored of a completion
send_queue.py    bounded queue of what waits to be sent
sender.py        redacts and encrypts content, and writes it to Redis
"""
