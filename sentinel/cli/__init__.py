"""The command line: one file per verb group (spec 09)."""
