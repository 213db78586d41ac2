"""One migration operation that renames many columns.

After each of Django's operations, the models that are related to a changed one are rendered again.
Nearly all models are related to the tenant, so renaming columns one by one takes seconds. This
operation drops the rendered models first, so that they are rendered only once.
"""

from collections.abc import Mapping

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import RenameField
from django.db.migrations.operations.base import Operation
from django.db.migrations.state import ProjectState


class RenameColumns(Operation):
    """Renames fields and their columns. Each column must have the name of its field."""

    def __init__(self, columns: Mapping[str, Mapping[str, str]]) -> None:
        """`columns`: model name in lower case -> old field name -> new field name."""
        self.columns = columns

    def state_forwards(self, app_label: str, state: ProjectState) -> None:
        state.__dict__.pop("apps", None)  # a cached property: the rendered models
        for model, new_names in self.columns.items():
            for old_name, new_name in new_names.items():
                RenameField(model, old_name, new_name).state_forwards(app_label, state)

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        self._rename(app_label, schema_editor, to_state, is_backwards=False)

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        self._rename(app_label, schema_editor, to_state, is_backwards=True)

    def _rename(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        state: ProjectState,
        *,
        is_backwards: bool,
    ) -> None:
        for model, new_names in self.columns.items():
            options = state.models[app_label, model].options
            table = schema_editor.quote_name(options.get("db_table", f"{app_label}_{model}"))
            for old_name, new_name in new_names.items():
                source, target = (new_name, old_name) if is_backwards else (old_name, new_name)
                schema_editor.execute(
                    f"ALTER TABLE {table} RENAME COLUMN {schema_editor.quote_name(source)}"
                    f" TO {schema_editor.quote_name(target)}"
                )

    def describe(self) -> str:
        return f"Rename columns of {', '.join(self.columns)}"
