"""The usage figures of the last minute over a WebSocket, for users who may see them on a page.

authentication.py   finds the viewer by the session cookie, with the same rules as for pages
access_feed.py      notifies sockets when the access of their viewer may have changed
broadcaster.py      reads the figures of a tenant or user once for all their viewers
consumer.py         serves one WebSocket
"""
