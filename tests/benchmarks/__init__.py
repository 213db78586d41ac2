"""What the product is measured by: `python -m tests.benchmarks.NAME`, one JSON line a figure."""
