"""The definitions of exports, by what they are about."""
