"""English formats of dates and times. Django looks them up by these names."""

from typing import Final

DATE_FORMAT: Final = "j F Y"
SHORT_DATE_FORMAT: Final = "j M Y"
TIME_FORMAT: Final = "H:i"
DATETIME_FORMAT: Final = "j F Y, H:i:s"
SHORT_DATETIME_FORMAT: Final = "j M Y, H:i"
MONTH_DAY_FORMAT: Final = "j M"
YEAR_MONTH_FORMAT: Final = "F Y"
FIRST_DAY_OF_WEEK: Final = 1  # Monday
