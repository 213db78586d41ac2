"""The definitions of exports, by subject."""
