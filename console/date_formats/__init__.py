"""Date and number formats, in place of Django's formats that can be misread (11/12/2026)."""
