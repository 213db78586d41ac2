from django.apps import AppConfig


class TenantsConfig(AppConfig):
    name = "tenants"

    def ready(self) -> None:
        # These register the system checks of the database role and of the root keys.
        import caret.foundation.postgres.roles  # noqa: F401
        import tenants.security.encryption.startup_check  # noqa: F401

        # `tenants.policy` cannot import the domains that react to a policy change, because they
        # import it. Their functions are registered here instead.
        from tenants.fleet.snapshots.publisher import try_publish_snapshot
        from tenants.policy.operations import register_effect
        from tenants.policy.snapshot_version import register_publisher
        from tenants.privacy.consent_lifecycle import record_consent_by_policy
        from tenants.privacy.retrieval_index.erasure import erase_disallowed_by_policy

        register_publisher(try_publish_snapshot)
        register_effect(erase_disallowed_by_policy)
        register_effect(record_consent_by_policy)
