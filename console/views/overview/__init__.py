"""The first page: a summary for administrators, and the performance for engineers."""
