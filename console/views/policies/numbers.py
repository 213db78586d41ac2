"""Numbers in words' company, as the reader's language groups them."""

from django.utils.formats import number_format


def shown_number(number: int) -> str:
    return str(number_format(number, use_l10n=True, force_grouping=True))
