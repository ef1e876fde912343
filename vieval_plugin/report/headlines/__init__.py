"""What a report says first: headlines with the ranks that the data supports, and what each row cost."""
