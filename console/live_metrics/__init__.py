"""The last minute's numbers over a WebSocket, for users who may see them on a page.

door.py          whose socket it is, judged as pages judge it
access_feed.py   tells when that may have changed
board.py         one reading of a tenant's last minute for all who look at it
consumer.py      one socket
"""
