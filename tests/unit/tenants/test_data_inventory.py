"""Every table that refers to users is part of the export of personal data."""

from django.apps import apps

from tenants.compliance.data_subjects.data_inventory import (
    EXCLUDED_FROM_EXPORT,
    OWN_SOURCES,
    SOURCES,
)

# Columns that name a row's user or author.
USER_COLUMNS = {
    *("user_id", "owner_id", "actor_id", "author_id", "holder", "holder_id", "subject_id"),
    *("invited_by_id", "requested_by_id", "created_by_id", "issued_by_id"),
    *("email", "address", "caller", "scim_user_id"),
}


def test_every_table_that_names_users_is_exported_or_excluded_with_a_reason() -> None:
    named_models = {
        model
        for model in apps.get_app_config("tenants").get_models()
        if any(field.attname in USER_COLUMNS for field in model._meta.concrete_fields)
    }
    # The holder of a domain or of a pool is a tenant.
    named_models = {
        model
        for model in named_models
        if model.__name__ not in ("VerifiedDomain", "PoolAssignment")
    }

    exported_models = {source.model for source in (*SOURCES, *OWN_SOURCES)}

    assert named_models - exported_models == set(EXCLUDED_FROM_EXPORT)


def test_every_foreign_key_to_a_user_is_listed() -> None:
    """Otherwise the test above would miss a column with an unusual name."""
    columns = {
        field.attname
        for model in apps.get_app_config("tenants").get_models()
        for field in model._meta.concrete_fields
        if field.related_model is apps.get_model("tenants", "User")
    }

    assert columns <= USER_COLUMNS


def test_source_names_are_unique() -> None:
    names = [source.name for source in (*SOURCES, *OWN_SOURCES)]

    assert len(names) == len(set(names))
