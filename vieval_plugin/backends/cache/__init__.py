"""Replies kept on disk, so that answered questions are not asked again."""
