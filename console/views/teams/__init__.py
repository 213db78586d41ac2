"""Teams and who is in them."""
