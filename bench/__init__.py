"""The benchmarks: every figure is a ratio taken in one run on one machine (spec 08)."""
