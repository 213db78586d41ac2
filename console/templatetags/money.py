"""Filters for amounts of money and percentages.

{{ row.total_micros|money:row.currency }}        in whole cents
{{ row.price_micros|exact_money:row.currency }}  with all decimals
{{ alert.percent|percent_sign }}                 a number with a percent sign
"""

from django import template

from console.texts.money_format import format_amount, format_exact_amount
from console.usage_filters.number_format import format_percent

register = template.Library()
register.filter("money", format_amount)
register.filter("percent_sign", format_percent)
register.filter("exact_money", format_exact_amount)
