"""Two aliases of one database: `default` for the application, `owner` for migrations only."""

from typing import Any

from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model

from caret.foundation.postgres import OWNER_ALIAS


class MigrationRouter:
    """Routes all queries to `default`, and allows migrations on `owner` only."""

    def db_for_read(self, model: type[Model], **hints: Any) -> str:
        return DEFAULT_DB_ALIAS

    def db_for_write(self, model: type[Model], **hints: Any) -> str:
        return DEFAULT_DB_ALIAS

    def allow_relation(self, first: Model, second: Model, **hints: Any) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool:
        return db == OWNER_ALIAS
