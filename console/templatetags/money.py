"""Money in templates: `{{ row.total_micros|money:row.currency }}`."""

from django import template

from console.insight.numbers import percent
from console.money import amount, exact

register = template.Library()
register.filter("money", amount)
register.filter("percent_sign", percent)
register.filter("exact_money", exact)
