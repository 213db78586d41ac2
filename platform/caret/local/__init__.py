"""The local installation: Postgres, Valkey, an engine and Caret under one supervisor.

`manage.py up` runs it for development, demonstrations and tests. In production, settings name
separate Postgres, Redis and engine servers, and this package starts none of them.
"""
