"""Plans and prices, which the whole installation shares. Rows are never changed."""

from typing import ClassVar

from django.db import models

from caret.foundation.ids import uuid7
from caret.foundation.postgres.row_security import APPEND_ONLY, Grants


class Plan(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.SlugField(max_length=40, unique=True)
    name = models.CharField(max_length=120)
    currency = models.CharField(max_length=3)  # tenants.base.money.Currency
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            Grants(
                name="plan_grants",
                reason="the platform's price list belongs to no tenant",
                privileges=APPEND_ONLY,
            )
        ]

    def __str__(self) -> str:
        return self.slug


class PriceVersion(models.Model):
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, db_index=False, related_name="+")
    effective_on = models.DateField()  # from 00:00 UTC, until the next version
    seat_month_micros = models.BigIntegerField()  # for one seat and one month
    tiers = models.JSONField()  # tier -> caret.contracts.pricing.TierPrices
    # Model -> TierPrices, only for models that do not have their tier's price.
    model_prices = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    created_at = models.DateTimeField()

    class Meta:
        db_table = "tenants_price_version"
        constraints: ClassVar = [
            # Reader: the price book of a plan.
            models.UniqueConstraint(fields=["plan", "effective_on"], name="price_version_once"),
            models.CheckConstraint(
                condition=models.Q(seat_month_micros__gte=0), name="price_version_seat"
            ),
            Grants(
                name="price_version_grants",
                reason="the platform's price list belongs to no tenant",
                privileges=APPEND_ONLY,
            ),
        ]

    def __str__(self) -> str:
        return f"{self.plan_id} from {self.effective_on}"
