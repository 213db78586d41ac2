from django.apps import AppConfig


class TenantsConfig(AppConfig):
    name = "tenants"

    def ready(self) -> None:
        # They register the system checks of the database role and of the root keys.
        import caret.foundation.postgres.roles  # noqa: F401
        import tenants.security.encryption.startup_check  # noqa: F401
