"""Results on disk -> records, conversations and trees; one reader a host."""
