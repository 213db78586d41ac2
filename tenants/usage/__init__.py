"""Usage: records on their way into the tables, and the figures read from them."""
