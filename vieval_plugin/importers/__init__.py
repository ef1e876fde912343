"""Prompt packs from the authors' own wording, a module a judge."""
