import os

from vlmeval.smp import load


def infer_data_job(
    model, work_dir, model_name, dataset, api_nproc=4, retry_failed=True
):
    sheet = f"{work_dir}/{model_name}_{dataset.dataset_name}.tsv"
    if os.path.exists(sheet):
        table = load(sheet)
        held = dict(zip(table["index"], table["prediction"], strict=True))
    else:
        held = {}
    rows = [dataset.data.iloc[number] for number in range(len(dataset.data))]
    dataset.data["prediction"] = [
        held.get(row["index"])
        or model.generate(
            message=dataset.build_prompt(row), dataset=dataset.dataset_name
        )
        for row in rows
    ]
    dataset.data.to_csv(sheet, sep="\t", index=False)
    return model
