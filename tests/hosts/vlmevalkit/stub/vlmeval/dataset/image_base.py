class ImageBaseDataset:
    def __init__(self, dataset="", skip_noimg=True):
        self.dataset_name, self.data = dataset, self.load_data(dataset)
