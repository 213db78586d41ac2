"""Plans, subscriptions and the ledger, with what the database itself holds the ledger to:

- entries and their transaction and accounts are of one tenant and one currency (foreign keys);
- the entries of one INSERT balance, transaction by transaction (a trigger over its new rows, which
  needs no scope, cannot be put off, and leaves nothing to add up later).
"""

import django.db.models.deletion
from django.db import migrations, models

import caret.foundation.ids
import caret.foundation.postgres.row_security

BALANCE = """
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
NO_BALANCE = """
DROP TRIGGER ledger_entry_balances ON tenants_ledger_entry;
DROP FUNCTION caret_ledger_balances();
"""
BIND = """
ALTER TABLE tenants_ledger_entry
  ADD CONSTRAINT tenants_ledger_entry_transaction FOREIGN KEY (tenant_id, transaction_id, currency)
    REFERENCES tenants_ledger_transaction (tenant_id, id, currency),
  ADD CONSTRAINT tenants_ledger_entry_account FOREIGN KEY (tenant_id, account, currency)
    REFERENCES tenants_ledger_account (tenant_id, code, currency);
"""
UNBIND = """
ALTER TABLE tenants_ledger_entry
  DROP CONSTRAINT tenants_ledger_entry_transaction, DROP CONSTRAINT tenants_ledger_entry_account;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0009_kept_answers"),
    ]

    operations = [
        migrations.CreateModel(
            name="BillingState",
            fields=[
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="tenants.tenant",
                    ),
                ),
                ("currency", models.CharField(max_length=3)),
                ("rated_batch", models.BigIntegerField(default=0)),
                ("seats_booked_on", models.DateField(null=True)),
                ("invoiced_month", models.DateField(null=True)),
                ("last_number", models.PositiveIntegerField(default=0)),
            ],
            options={
                "db_table": "tenants_billing_state",
            },
        ),
        migrations.CreateModel(
            name="LedgerAccount",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "code",
                        "currency",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("code", models.CharField(max_length=40)),
                ("currency", models.CharField(max_length=3)),
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
                "db_table": "tenants_ledger_account",
            },
        ),
        migrations.CreateModel(
            name="LedgerEntry",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "transaction_id",
                        "position",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("transaction_id", models.UUIDField()),
                ("position", models.PositiveSmallIntegerField()),
                ("account", models.CharField(max_length=40)),
                ("currency", models.CharField(max_length=3)),
                ("amount_micros", models.BigIntegerField()),
                ("line", models.CharField(max_length=40)),
                ("day", models.DateField()),
                ("quantity", models.BigIntegerField()),
                ("running", models.BigIntegerField()),
                ("price_micros", models.BigIntegerField()),
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
                "db_table": "tenants_ledger_entry",
            },
        ),
        migrations.CreateModel(
            name="LedgerTransaction",
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
                ("id", models.UUIDField(default=caret.foundation.ids.uuid7, editable=False)),
                ("source_kind", models.CharField(max_length=16)),
                ("source_id", models.CharField(max_length=80)),
                ("currency", models.CharField(max_length=3)),
                ("day", models.DateField()),
                ("month", models.DateField()),
                ("memo", models.CharField(max_length=200)),
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
                "db_table": "tenants_ledger_transaction",
            },
        ),
        migrations.CreateModel(
            name="Plan",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=caret.foundation.ids.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("slug", models.SlugField(max_length=40, unique=True)),
                ("name", models.CharField(max_length=120)),
                ("currency", models.CharField(max_length=3)),
                ("created_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="PriceVersion",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=caret.foundation.ids.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("effective_on", models.DateField()),
                ("seat_month_micros", models.BigIntegerField()),
                ("tiers", models.JSONField()),
                ("created_at", models.DateTimeField()),
                (
                    "plan",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.plan",
                    ),
                ),
            ],
            options={
                "db_table": "tenants_price_version",
            },
        ),
        migrations.CreateModel(
            name="Subscription",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "starts_on",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("starts_on", models.DateField()),
                ("created_at", models.DateTimeField()),
                (
                    "plan",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="tenants.plan",
                    ),
                ),
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
        ),
        migrations.CreateModel(
            name="UsageBatchCounter",
            fields=[
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="tenants.tenant",
                    ),
                ),
                ("last_batch", models.BigIntegerField(default=0)),
            ],
            options={
                "db_table": "tenants_usage_batch_counter",
            },
        ),
        migrations.AddField(
            model_name="usagerecord",
            name="batch",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddIndex(
            model_name="usagerecord",
            index=models.Index(fields=["tenant", "batch"], name="usage_record_batch"),
        ),
        migrations.AddConstraint(
            model_name="billingstate",
            constraint=caret.foundation.postgres.row_security.RowSecurity(
                name="billing_state_tenant",
                privileges=("SELECT", "INSERT", "UPDATE"),
                user_column=None,
            ),
        ),
        migrations.AddConstraint(
            model_name="plan",
            constraint=caret.foundation.postgres.row_security.Grants(
                name="plan_grants",
                privileges=("SELECT", "INSERT"),
                reason="the platform's price list belongs to no tenant",
            ),
        ),
        migrations.AddConstraint(
            model_name="usagebatchcounter",
            constraint=caret.foundation.postgres.row_security.RowSecurity(
                name="usage_feed_tenant",
                privileges=("SELECT", "INSERT", "UPDATE"),
                user_column=None,
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgeraccount",
            constraint=caret.foundation.postgres.row_security.RowSecurity(
                name="ledger_account_tenant", privileges=("SELECT", "INSERT"), user_column=None
            ),
        ),
        migrations.AddIndex(
            model_name="ledgerentry",
            index=models.Index(
                fields=["tenant", "day", "line", "-running"], name="ledger_entry_running"
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgerentry",
            constraint=caret.foundation.postgres.row_security.RowSecurity(
                name="ledger_entry_tenant", privileges=("SELECT", "INSERT"), user_column=None
            ),
        ),
        migrations.AddIndex(
            model_name="ledgertransaction",
            index=models.Index(fields=["tenant", "month"], name="ledger_transaction_month"),
        ),
        migrations.AddIndex(
            model_name="ledgertransaction",
            index=models.Index(
                fields=["tenant", "-created_at", "-id"], name="ledger_transaction_newest"
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgertransaction",
            constraint=models.UniqueConstraint(
                fields=("tenant", "source_kind", "source_id"), name="ledger_transaction_source"
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgertransaction",
            constraint=models.UniqueConstraint(
                fields=("tenant", "id", "currency"), name="ledger_transaction_currency"
            ),
        ),
        migrations.AddConstraint(
            model_name="ledgertransaction",
            constraint=caret.foundation.postgres.row_security.RowSecurity(
                name="ledger_transaction_tenant", privileges=("SELECT", "INSERT"), user_column=None
            ),
        ),
        migrations.AddConstraint(
            model_name="priceversion",
            constraint=models.UniqueConstraint(
                fields=("plan", "effective_on"), name="price_version_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="priceversion",
            constraint=models.CheckConstraint(
                condition=models.Q(("seat_month_micros__gte", 0)), name="price_version_seat"
            ),
        ),
        migrations.AddConstraint(
            model_name="priceversion",
            constraint=caret.foundation.postgres.row_security.Grants(
                name="price_version_grants",
                privileges=("SELECT", "INSERT"),
                reason="the platform's price list belongs to no tenant",
            ),
        ),
        migrations.AddConstraint(
            model_name="subscription",
            constraint=caret.foundation.postgres.row_security.RowSecurity(
                name="subscription_tenant", privileges=("SELECT", "INSERT"), user_column=None
            ),
        ),
        migrations.RunSQL(BIND, UNBIND),
        migrations.RunSQL(BALANCE, NO_BALANCE),
    ]
