"""Money in templates: `{{ row.total_micros|money:row.currency }}`."""

from django import template

from console.texts.money_format import amount, exact
from console.usage_filters.number_format import percent

register = template.Library()
register.filter("money", amount)
register.filter("percent_sign", percent)
register.filter("exact_money", exact)
