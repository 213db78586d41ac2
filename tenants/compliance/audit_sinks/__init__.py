"""Delivery of audit entries to sinks: a tenant's webhooks and syslog servers.

endpoint.py         validates the address of a sink
messages.py         formats an entry for a sink
webhook.py          delivers by HTTP, signed as in Standard Webhooks
syslog.py           delivers by RFC 5424 over TCP or TLS
delivery_worker.py  delivers the entries after each sink's cursor, at least once
operations.py       creates, tests, replays and deletes sinks
"""
