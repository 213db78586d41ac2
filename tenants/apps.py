from django.apps import AppConfig


class TenantsConfig(AppConfig):
    name = "tenants"

    def ready(self) -> None:
        """Register the system checks, and the functions that react to changes."""
        # These imports register the system checks of the database role and of the root keys.
        import caret.foundation.postgres.roles  # noqa: F401
        import tenants.security.encryption.startup_check  # noqa: F401

        # `tenants.policy` cannot import the packages that react to a change of a policy, because
        # those packages import `tenants.policy`. So their functions are registered here.
        from tenants.fleet.snapshots.publisher import try_publish_snapshot
        from tenants.policy.operations import register_effect
        from tenants.policy.snapshot_version import register_publisher
        from tenants.privacy.consent_lifecycle import record_consent_by_policy
        from tenants.privacy.retrieval_index.erasure import erase_disallowed_by_policy

        register_publisher(try_publish_snapshot)
        register_effect(erase_disallowed_by_policy)
        register_effect(record_consent_by_policy)
