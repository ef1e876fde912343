"""Headlines at the head of a report, with the ranks that the data supports and the cost of each row."""
