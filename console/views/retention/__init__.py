"""Retention: days of each data class, legal holds, deletion certificates."""
