"""Harnesses that VIEval plugs into."""
