"""How many GPUs a load needs, how long first tokens then take, and what an accepted token costs."""
