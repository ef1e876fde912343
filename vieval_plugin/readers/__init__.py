"""Rows of files that people bring, as samples and contests."""
