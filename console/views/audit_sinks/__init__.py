"""Audit sinks: webhooks and syslog servers that receive the audit log."""
