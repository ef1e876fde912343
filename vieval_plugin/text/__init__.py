"""Text of others: made safe, redacted, laid out and parsed within limits."""
