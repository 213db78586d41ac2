"""The last stage: every request leaves one record, in counts, never in code."""
