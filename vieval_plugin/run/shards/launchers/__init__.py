"""Launchers of workers beside one in this process: several processes, a part of a job array,
Ray.
"""
