import argparse
import os

from vlmeval.dataset import build_dataset
from vlmeval.inference import infer_data_job


def main():
    parser = argparse.ArgumentParser()
    for name in ("--data", "--model", "--work-dir"):
        parser.add_argument(name)
    given = parser.parse_args()
    work_dir = f"{given.work_dir}/{given.model}"
    os.makedirs(work_dir, exist_ok=True)
    dataset = build_dataset(given.data)
    if dataset is None:
        return print("not officially supported")
    infer_data_job(
        given.model, work_dir=work_dir, model_name=given.model, dataset=dataset
    )
    print(dataset.evaluate(f"{work_dir}/{given.model}_{given.data}.tsv").to_string())


if __name__ == "__main__":
    main()
