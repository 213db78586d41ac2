"""The common parts of usage pages: period and filters of the URL, and numbers as text."""
