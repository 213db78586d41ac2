"""The rules of the database that models cannot express.

- Foreign keys that include the tenant. Postgres checks foreign keys without row security, so a key
  without the tenant could refer to a row of another tenant.
- A trigger: the ledger entries of one INSERT balance for each transaction.
- The application's privileges for the tables of Django and django-allauth.
- Storage: embeddings stay in their rows, and destroyed keys are vacuumed soon.
"""

from typing import Final

from django.db import migrations

from caret.foundation.postgres.row_security import READ_WRITE, grant_sql

# (table, name, columns, referenced columns)
FOREIGN_KEYS: Final = (
    (
        "keyring_data_key",
        "keyring_data_key_tenant_key",
        "(tenant_id, tenant_key_id)",
        "keyring_tenant_key (tenant_id, id)",
    ),
    (
        "tenants_alert_delivery",
        "tenants_alert_delivery_alert",
        "(tenant_id, alert_id)",
        "tenants_budget_alert (tenant_id, id)",
    ),
    (
        "tenants_apikey",
        "tenants_apikey_created_by_id_member",
        "(tenant_id, created_by_id)",
        "tenants_membership (tenant_id, user_id)",
    ),
    (
        "tenants_apikey",
        "tenants_apikey_issued_by_id_member",
        "(tenant_id, issued_by_id)",
        "tenants_membership (tenant_id, user_id)",
    ),
    (
        "tenants_apikey",
        "tenants_apikey_owner_id_member",
        "(tenant_id, owner_id)",
        "tenants_membership (tenant_id, user_id)",
    ),
    (
        "tenants_content_object",
        "tenants_content_object_erasure",
        "(tenant_id, erasure_id)",
        "tenants_content_erasure (tenant_id, id)",
    ),
    (
        "tenants_export_job",
        "tenants_export_build_requested_by",
        "(tenant_id, requested_by_id)",
        "tenants_membership (tenant_id, user_id)",
    ),
    (
        "tenants_export_object",
        "tenants_export_object_build",
        "(tenant_id, build_id)",
        "tenants_export_job (tenant_id, id)",
    ),
    (
        "tenants_ledger_entry",
        "tenants_ledger_entry_account",
        "(tenant_id, account, currency)",
        "tenants_ledger_account (tenant_id, code, currency)",
    ),
    (
        "tenants_ledger_entry",
        "tenants_ledger_entry_transaction",
        "(tenant_id, transaction_id, currency)",
        "tenants_ledger_transaction (tenant_id, id, currency)",
    ),
    (
        "tenants_scim_group",
        "scim_group_team",
        "(tenant_id, team_id)",
        "tenants_team (tenant_id, id) ON DELETE CASCADE",
    ),
    (
        "tenants_scim_group_member",
        "scim_group_member_group",
        "(tenant_id, team_id)",
        "tenants_scim_group (tenant_id, team_id) ON DELETE CASCADE",
    ),
    (
        "tenants_scim_group_member",
        "scim_group_member_user",
        "(tenant_id, scim_user_id)",
        "tenants_scim_user (tenant_id, id) ON DELETE CASCADE",
    ),
    (
        "tenants_scim_user",
        "scim_user_member",
        "(tenant_id, user_id)",
        "tenants_membership (tenant_id, user_id)",
    ),
    (
        "tenants_team_membership",
        "team_membership_team",
        "(tenant_id, team_id)",
        "tenants_team (tenant_id, id) ON DELETE CASCADE",
    ),
    (
        "tenants_team_membership",
        "team_membership_member",
        "(tenant_id, user_id)",
        "tenants_membership (tenant_id, user_id)",
    ),
)
# The trigger reads only the new rows, so it needs no tenant scope and cannot be deferred.
BALANCE: Final = """
CREATE FUNCTION caret_ledger_balances() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE wrong uuid;
BEGIN
  SELECT transaction_id INTO wrong FROM added
  GROUP BY tenant_id, transaction_id HAVING sum(amount_micros) <> 0 LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'ledger transaction % does not balance', wrong USING ERRCODE = 'check_violation';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER ledger_entry_balances AFTER INSERT ON tenants_ledger_entry
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION caret_ledger_balances();
"""
# Django's permissions are not used: see tenants.base.permissions. Accounts at identity providers
# and e-mail addresses are in tables of our own.
GRANTS: Final = {
    "django_session": READ_WRITE,
    "django_migrations": ("SELECT",),
    "django_content_type": (),
    "auth_permission": (),
    "auth_group": (),
    "auth_group_permissions": (),
    "account_emailaddress": ("SELECT",),
    "account_emailconfirmation": (),
    "mfa_authenticator": READ_WRITE,
    "socialaccount_socialaccount": ("SELECT",),
    "socialaccount_socialapp": (),
    "socialaccount_socialtoken": (),
    "usersessions_usersession": READ_WRITE,
}
# A destroyed key is in its table until it is vacuumed. The default is a vacuum after 50 changes.
VACUUM_SOON: Final = "SET (autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0)"
KEY_TABLES: Final = ("keyring_root_key", "keyring_tenant_key", "keyring_data_key")
# Beside a sealed text, embeddings would be stored out of line: comparing 5,000 of them would read
# 10,677 pages instead of 1,256.
EMBEDDINGS: Final = "ALTER TABLE tenants_retrieval_chunk ALTER COLUMN embedding SET STORAGE PLAIN"


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0001_initial"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("sessions", "0001_initial"),
        ("account", "0009_emailaddress_unique_primary_email"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("socialaccount", "0006_alter_socialaccount_extra_data"),
        ("usersessions", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL(
            [
                f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY {columns} REFERENCES {target}"
                for table, name, columns, target in FOREIGN_KEYS
            ]
        ),
        migrations.RunSQL(BALANCE),
        migrations.RunSQL(
            [
                statement
                for table, privileges in GRANTS.items()
                for statement in grant_sql(table, privileges)
            ]
        ),
        migrations.RunSQL([f"ALTER TABLE {table} {VACUUM_SOON}" for table in KEY_TABLES]),
        migrations.RunSQL(EMBEDDINGS),
    ]
