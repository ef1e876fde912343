"""Prompt packs: one folder a judge and version, Jinja templates and a manifest."""
