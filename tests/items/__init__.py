"""Item tables: built, read back, changed and served."""
