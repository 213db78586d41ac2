"""Postgres, Valkey, an engine and Caret's own processes as children of one supervisor.

For development, demonstration and tests: `manage.py up`. Production names its own Postgres, Redis
and engines in settings, and this package stays unused there.
"""
