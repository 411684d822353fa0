"""A persona home: one value per file, read into facts (spec 02 section 1)."""
