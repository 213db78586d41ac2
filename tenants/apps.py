from django.apps import AppConfig


class TenantsConfig(AppConfig):
    name = "tenants"

    def ready(self) -> None:
        # Registers the system check of the database role.
        import caret.foundation.postgres.roles  # noqa: F401
