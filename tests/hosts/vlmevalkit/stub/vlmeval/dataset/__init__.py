DATASET_CLASSES, SUPPORTED_DATASETS = [], []


def build_dataset(dataset_name, **_):
    return next(
        (
            kind(dataset_name)
            for kind in DATASET_CLASSES
            if dataset_name in kind.supported_datasets()
        ),
        None,
    )
