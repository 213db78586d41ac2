"""Teams: made, renamed, deleted; members put into them and taken out."""
