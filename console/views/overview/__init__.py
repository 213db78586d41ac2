"""The first page: five figures, usage over time, where it comes from, what it costs."""
