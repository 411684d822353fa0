"""`state.db`: journal, cursors, threads, usage (spec 02 sections 1 and 4)."""
