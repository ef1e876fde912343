"""Tools that agentic judges call on images."""
