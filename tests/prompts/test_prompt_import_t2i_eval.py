"""Test the import of T2I-Eval's wording, from a repository of its shape."""

from tests.playing import label_of, play
from tests.scripted_t2i_eval import Scene, entity
from vieval_plugin.judges import t2i_eval
from vieval_plugin.judges.protocol import Text
from vieval_plugin.judges.t2i_eval.structure import (
    Extraction,
    Question,
    Relation,
    structure_text,
)
from vieval_plugin.prompts import packs

SCENE = Scene(
    "a cat on a mat", (entity("cat"), entity("mat")), (Relation(("cat", "mat"), "on"),)
)


def checkout(folder):
    """A checkout with every constant, said in few words."""
    image, structure = "<ImagePlaceholder>", "{structure_info}"
    texts = {
        "INTRINSIC_EVAL_TEMPLATE_STAGE_1": f"explain {{answer}} by {structure}",
        "INTRINSIC_EVAL_TEMPLATE_STAGE_2": f"{image}score {{answer_and_exp}} by {structure}",
        "INTRINSIC_ANSWER_TEMPLATE": f"{image}answer {{question}}",
    }
    texts |= {
        name.replace("INTRINSIC", "RELATIONSHIP"): text for name, text in texts.items()
    }
    for reference in ("REF_FREE", "REF_BASED"):
        for stage, field in ((1, "question"), (2, "question_and_exp")):
            name = f"{reference}_APPEARANCE_ANSWER_TEMPLATE_STAGE_{stage}"
            texts[name] = f"{image} {reference} looks {{{field}}}"
    for name in ("APPEARANCE", "INTRINSIC", "RELATIONSHIP", "MERGE"):
        summary = f"{name}_SUMMARIZE_TEMPLATE_STAGE"
        texts[f"{summary}_1"] = f"{image}sum {{eval_result}} {structure}"
        texts[f"{summary}_2"] = f"{image}number {{eval_result_and_exp}}"
    extract = "Extract {{all}} of {text_prompt} <ImagePlaceholder>"
    lines = ["TASK = 'Be an expert. '"]
    lines.append(f"EXTRACT_TEMPLATE = TASK + {extract!r}.strip()")
    lines += [f"{name} = ({text!r} '')" for name, text in texts.items()]
    source = folder / "src" / "prompt"
    source.mkdir(parents=True)
    text = "\n".join([*lines, "raise SystemExit('never run')\n"])
    (source / "templates.py").write_text(text)
    return folder


def structured():
    entities, asked = SCENE.entities, []
    for one in entities:
        named = (one.name,)
        asked.append(Question("appearance", f"Is the {one.name} real?", named))
        for attribute in one.attributes:
            text = f"{attribute.name} of {one.name}?"
            asked.append(Question("intrinsic", text, named))
    asked.append(Question("relationship", "Where is the cat?", ("cat", "mat")))
    found = Extraction(entities, SCENE.relations, tuple(asked))
    return structure_text(found, questions=True)


SAID = {
    "answer": "# Answer\n## cat\n- question: ?\n- answer: it is there",
    "explanation": "# Evaluation\n- explanation: as asked",
}


def test_models_that_answer_in_the_published_layout_work_as_they_are(tmp_path, vieval):
    repo, to = checkout(tmp_path / "repo"), tmp_path / "packs"
    vieval("prompts", "import", "t2i_eval", repo, "--to", to)
    pack = packs.load(str(to / "authors"))

    def answer(ask):
        if label_of(ask) == "extraction":
            return Text(structured())
        return Text(SAID.get(label_of(ask).rsplit("/", 1)[1], "8.5"))

    judge = t2i_eval.build(t2i_eval.T2IEvalOptions(), pack)
    played = play(judge(SCENE.sample), answer=answer)
    verdict = played.verdict
    assert (verdict.status, verdict.findings) == ("ok", ())
    assert verdict.scores["O"] == 0.85
    assert len(played.rounds) == 8
    assert played.calls == 1 + 2 * 2 + 3 * (4 + 1) + 6 + 2
    extract = "Be an expert. Extract {all} of a cat on a mat"
    assert played.asked("extraction").messages[0].parts == (SCENE.picture, extract)
    explanation = played.asked("intrinsic/1/explanation")
    assert [m.role for m in explanation.messages] == ["user", "assistant", "user"]
    question = "- question: existence of cat?"
    explain = f"explain {question}\n- answer: it is there by # Structure"
    assert str(explanation.messages[2].parts[0]).startswith(explain)
    # the authors score in a conversation of its own, with the image
    [score] = played.asked("intrinsic/1/score").messages
    image, text = score.parts
    assert image == SCENE.picture
    assert "- explanation: as asked" in str(text)
    assert "REF_FREE" in played.text("appearance/1/explanation")
    summary = "### Appearance Quality Summary\n- explanation: as asked\n- score: 8.5"
    assert summary in played.text("overall/explanation")
