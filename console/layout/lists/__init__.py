"""Pages with lists: pagination, sorting, date ranges, and CSV files."""
