"""Launchers of workers: this process, several, a part of a job array, Ray."""
