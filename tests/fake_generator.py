"""A generator like lmms-eval's own: it saves images and answers with JSON, a path or words."""

import json
import os
from pathlib import Path

import numpy as np
import PIL.Image
from lmms_eval.api.model import lmms


class FakeGenerator(lmms):
    """`form`: json, two (images where one is asked), folder, path, text, absent.

    It says where it saves unless `says` is empty. `texts` is a file of JSON with the answers of a
    model that makes nothing, by document. As a judge it gives the worst of scores.
    """

    is_simple = True

    def __init__(self, form="json", out="", says="output_dir", texts="", **_):
        super().__init__()
        self.form, self.out = form, Path(out)
        self.texts = json.loads(Path(texts).read_text()) if texts else None
        if says:
            setattr(self, says, str(out))
        self.out.mkdir(parents=True, exist_ok=True)

    def generate_until(self, requests):
        return [self._answer(*request.args) for request in requests]

    loglikelihood = generate_until_multi_round = generate_until

    def _answer(self, context, _given, visuals, doc_id, task, split):
        shown = visuals(self.task_dict[task][split][doc_id])
        if task == "vieval_asks":  # it is asked as a judge
            return json.dumps({"score": [4, 6], "reasoning": f"{len(shown)} images"})
        if self.texts is not None:
            return self.texts[doc_id]
        picture = np.asarray(shown[0]) if shown else np.zeros((32, 32, 3), np.uint8)
        noise = np.random.default_rng(doc_id).integers(
            0, 40, picture.shape, dtype=np.uint8
        )
        files = [self.out / f"{doc_id:04d}_s{seed}.png" for seed in range(2)]
        for path in files:
            PIL.Image.fromarray(np.maximum(picture, noise)).save(path)
        return {
            "json": json.dumps({"text": context, "images": [str(files[0])]}),
            "two": json.dumps({"text": "", "images": [str(path) for path in files]}),
            "folder": str(self.out),
            "path": os.path.relpath(files[0]),
            "text": "I cannot draw that.",
            "absent": json.dumps({"text": "", "images": ["/nowhere/at/all.png"]}),
        }[self.form]
