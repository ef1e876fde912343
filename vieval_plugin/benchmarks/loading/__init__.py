"""Common parts of the benchmarks' modules: reading rows and folders, fetching, unpacking, frames
of videos.
"""
