"""The first page: five figures, usage over time, its sources and costs."""
