"""The last minute's numbers over a WebSocket, for who may see them on a page.

door.py       whose socket it is, judged as pages judge it, and again each minute
board.py      one reading of a tenant's last minute for all who look at it
consumer.py   one socket
"""
