"""Usage records, and the reports computed from them."""
