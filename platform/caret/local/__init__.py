"""The local installation: Postgres, Valkey, an engine and Caret under one supervisor.

It serves development, demonstrations and tests: `manage.py up`. In production, settings name
separate Postgres, Redis and engine servers, and this package is not used.
"""
