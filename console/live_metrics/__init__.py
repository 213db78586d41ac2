"""The last minute's figures over a WebSocket, for users who may see them on a page.

authentication.py   finds the viewer by the session, with the rules of the pages
access_feed.py      notifies when a viewer's access may have changed
broadcaster.py      reads a tenant's last minute once for all its viewers
consumer.py         one WebSocket
"""
