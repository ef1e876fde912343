"""Replies kept on disk, so that nothing already answered is asked again."""
