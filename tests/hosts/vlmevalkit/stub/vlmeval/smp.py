import os
import pickle

import pandas


def load(path):
    return (
        pickle.load(open(path, "rb"))
        if path.endswith(".pkl")
        else pandas.read_csv(path, sep="\t")
    )


def LMUDataRoot():
    return os.environ["LMUData"]  # noqa: SIM112 (the host's own name)


def get_rank_and_world_size():
    return 0, 1
