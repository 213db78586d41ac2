"""Charts as numbers, which templates draw as SVG, so that a page needs no script."""
