"""Numbers within texts, grouped for the reader's language."""

from django.utils.formats import number_format


def shown_number(number: int) -> str:
    return str(number_format(number, use_l10n=True, force_grouping=True))
