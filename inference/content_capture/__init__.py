"""Content capture: prompts and completions of users who consented. Requests never wait for it.

capture.py       selects the content that may be stored of a completion
send_queue.py    bounded queue of content to send
sender.py        redacts and encrypts content, and writes it to Redis
"""
