"""Read results from disk as records, conversations and trees, with one reader per host."""
