"""The record stage: one usage record per request, with counts only, never code."""
