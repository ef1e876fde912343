"""What the benchmarks' modules share: reading rows and folders, fetching, unpacking, frames of videos."""
