"""Answers of VQA models in the files that DSG's authors published."""

from functools import partial

import pytest

from tests.builders import a_table
from vieval_plugin.judges.protocol import SampleId
from vieval_plugin.results.logs.question_answering import read

#: Answer in the file, the verdict's status, and the number that the authors count.
ANSWERS = [("yes", "ok", None), ("no", "ok", None)]
ANSWERS += [("", "parse_failure", 0.0), ("maybe", "parse_failure", 0.0)]


@pytest.mark.parametrize(("answer", "status", "recorded"), ANSWERS)
def test_neither_yes_nor_no_is_a_failure(tmp_path, answer, status, recorded):
    image = {"t2i_model": "mini-dalle", "item_id": "tifa160_0"}
    question = {"question": "Is there a tree?", "question_id": "1", "answer": answer}
    question["dependency_id"] = "0"
    a_table(tmp_path / "pali_dsg.csv", [{**image, **question}])
    path = tmp_path / "tifa160-likert-anns.csv"
    a_table(path, [{**image, "source_id": "coco_1", "answer": "3"}])
    [verdict] = read(tmp_path, partial(SampleId, "tifa160", "all"), "pali").values()
    assert verdict.status == status
    assert verdict.recorded.get("SC", verdict.recorded.get("O")) == recorded
