"""Privacy: consent, and data subject requests to export or erase."""
