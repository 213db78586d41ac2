"""Sessions of the console: their store, how they began, and the operators' own cookies."""
