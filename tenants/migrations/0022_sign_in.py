"""Sign-in methods of users, and the application's rights on django-allauth's tables."""

import uuid

import django.db.models.deletion
from django.db import migrations, models

import caret.foundation.postgres.row_security
from caret.foundation.postgres.row_security import READ_WRITE, grant_sql

# No address, token or account of a provider is kept there: those are ours.
ALLAUTH_GRANTS = {
    "account_emailaddress": ("SELECT",),
    "account_emailconfirmation": (),
    "mfa_authenticator": READ_WRITE,
    "socialaccount_socialaccount": ("SELECT",),
    "socialaccount_socialapp": (),
    "socialaccount_socialtoken": (),
    "usersessions_usersession": READ_WRITE,
}


class Migration(migrations.Migration):
    dependencies = [
        ("account", "0009_emailaddress_unique_primary_email"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("socialaccount", "0006_alter_socialaccount_extra_data"),
        ("usersessions", "0001_initial"),
        ("tenants", "0021_invoices"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="is_mfa_required",
            field=models.BooleanField(default=False),
        ),
        migrations.CreateModel(
            name="IdentityProvider",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("id", models.UUIDField(default=uuid.uuid4, editable=False)),
                ("issuer", models.CharField(max_length=500)),
                ("client_id", models.CharField(max_length=200)),
                ("sealed_secret", models.BinaryField()),
                ("created_at", models.DateTimeField()),
                (
                    "tenant",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
            ],
            options={
                "db_table": "tenants_identity_provider",
                "constraints": [
                    models.UniqueConstraint(fields=("tenant",), name="identity_provider_tenant"),
                    caret.foundation.postgres.row_security.RowSecurity(
                        name="identity_provider_security",
                        privileges=("SELECT", "INSERT", "UPDATE", "DELETE"),
                        user_column=None,
                    ),
                ],
            },
        ),
        migrations.RunSQL(
            [
                statement
                for table, privileges in ALLAUTH_GRANTS.items()
                for statement in grant_sql(table, privileges)
            ],
            migrations.RunSQL.noop,
        ),
    ]
