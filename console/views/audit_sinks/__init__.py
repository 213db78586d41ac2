"""Where the audit log is pushed to: webhooks and syslog servers."""
