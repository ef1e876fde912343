"""Data sets of the host's own tasks as Parquet files of a test's."""


def parquet(path, rows, *images):
    """Write rows, of which some columns are images."""
    import datasets

    path.parent.mkdir(parents=True, exist_ok=True)
    table = datasets.Dataset.from_list(rows)
    for column in images:
        table = table.cast_column(column, datasets.Image())
    table.to_parquet(str(path))
