"""Date formats. Some of Django's can be misread, such as 11/12/2026."""
