"""Verdicts that authors of benchmarks published: judges by name, their logs fetched and checked, and read as results.

A YAML file a benchmark describes the judges; `files.csv` has the commit, size and SHA-256 of each of their files.
"""
