"""Verdicts that benchmark authors published: judges by name, with their logs
downloaded, checked, and read as results.

`judges.yaml` describes the judges, `files.csv` has the commit, size and SHA-256 of each of their
files, and `printed.csv` the numbers that were printed of them.
"""
