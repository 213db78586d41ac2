"""The frame of every page: navigation, search, preferences, and rendering of page fragments."""
