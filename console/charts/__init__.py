"""Charts as numbers: templates draw them as SVG, so a page needs no script. Pure."""
