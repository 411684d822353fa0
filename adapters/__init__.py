"""Pure codecs, one file per kind of executor (spec 02 section 5)."""
