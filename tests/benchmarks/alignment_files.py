"""A few rows of each alignment benchmark, in the published form of its files."""

import json

IDENTITY = {"id": 7, "image_0": "ex_7_img_0", "image_1": "ex_7_img_1"}
CAPTIONS = {"caption_0": 'a "cup" {on} a table', "caption_1": "a table on a cup"}
TAGS = {"tag": "Noun", "secondary_tag": "", "num_main_preds": 1}
WINOGROUND = [{**IDENTITY, **CAPTIONS, **TAGS, "collapsed_tag": "Object"}]
PROMPT = {"prompt": "two cats", "models": {"gen2": [4.5], "pika": [1]}}
GENAI = {"prompt": "two cats", "models": {"SDXL_Base": [1, 2, 3], "DALLE_3": [5, 5, 4]}}
OBJECT = {"prompt": "a torn hat", "models": {"shap-e": [2, 2, 3]}}
PICKED = {"image_0": "a.jpg", "image_1": "b.jpg", "preferred": 1}
PICK = {"id": 3, "prompt": "a fox", **PICKED}
JUDGED = [("A  dog runs .", 1.0), ("A  dog runs .", 2.0), ("A cat sits .", 4.0)]
PHOTO = {
    "image_path": "photos/1.jpg",
    "human_judgement": [{"caption": text, "rating": rating} for text, rating in JUDGED],
}
TREE = {"text_id": "coco_1", "image_path": "coco_1_mini_dalle.jpg", "text": "a tree"}
TIFA = {"coco_1_mini_dalle": TREE}
ANSWERS = "model_type,source_id,worker_id,answer\nmini-dalle,coco_1,11,3\nmini-dalle,coco_1,12,5\n"
SEETRUE = (
    'image,text,label,dataset_source\nx.png,"a fox, asleep",1,drawbench\n'
    'y.png,"a fox, asleep",0,drawbench\nz.png,a cup,0,coco_t2i\n'
)
PAIR = {"id": 4, "image_caption": "a fox", "gt_image": "4.jpg", "ref_image": None}
SCORES = {"id": 4, "overall": {"overall": {"manual_score": [8, 7, 9, 8]}}}


def lines(rows):
    return "\n".join(json.dumps(row) for row in rows)


FILES = {
    "winoground": {"examples.jsonl": lines(WINOGROUND)},
    "eqben_mini": {"examples.jsonl": lines(WINOGROUND)},
    "genai_bench_t2i": {
        "527/genai_image.json": json.dumps({"00001": GENAI}),
        "527/genai_skills.json": json.dumps({"counting": [1], "advanced": [1]}),
    },
    "tifa160": {"tifa160.json": json.dumps(TIFA), "dsg_tifa160_anns.csv": ANSWERS},
    "seetrue": {"SeeTRUE.csv": SEETRUE},
    "pickapic": {"pickapic.jsonl": lines([PICK])},
    "flickr8k": {"flickr8k.json": json.dumps({"1.jpg": PHOTO})},
    "t2vscore": {"t2vscore_alignment_score.json": json.dumps({"0": PROMPT})},
    "stanfordt23d": {"stanfordt23d.json": json.dumps({"12": OBJECT})},
    "t2i_eval_bench": {
        "t2i-eval-bench.json": json.dumps([PAIR]),
        "scores.json": json.dumps([SCORES]),
    },
}
