"""How much is used and how good it is: counts by hour and day, metrics made of them, reports."""
