"""Teams: groups of members."""
