"""The sentinel itself: intake, worker, lock, presence, control (spec 02 section 3)."""
