"""`vieval serve`: judges as a reward server, in the protocols of trainers of image generators."""
