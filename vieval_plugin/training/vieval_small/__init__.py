"""The training of `vieval_small`: drawings on disk in pieces, then steps of a seed, both of which go on where they stopped."""
