"""Pushes audit entries to where a tenant's security people watch: webhooks and syslog.

address.py     what addresses a sink may have
messages.py    an entry, as a sink gets it
webhook.py     delivers by HTTP, signed by Standard Webhooks
syslog.py      delivers by RFC 5424 over TCP or TLS
push.py        each sink from its cursor on, at least once
operations.py  creates, tests, replays and deletes sinks
"""
