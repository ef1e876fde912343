"""The authors' wording of T2I-Eval, read from Python sources of their repository's shape (the
words are ours).
"""

from tests.playing import label_of, play
from tests.scripted_t2i_eval import Scene, entity
from vieval_plugin.cli import main
from vieval_plugin.judges import t2i_eval
from vieval_plugin.judges.protocol import Chat, Image, Text
from vieval_plugin.judges.t2i_eval.structure import Relation, structure_text
from vieval_plugin.prompts import packs

SCENE = Scene(
    "a cat on a mat", (entity("cat"), entity("mat")), (Relation(("cat", "mat"), "on"),)
)
NAMES = ["INTRINSIC", "RELATIONSHIP"]


def checkout(folder):
    """A checkout with every constant, said in few words."""
    source = folder / "src" / "prompt"
    source.mkdir(parents=True)
    lines = [
        "TASK = 'Be an expert. '",
        'EXTRACT_TEMPLATE = TASK + "Extract {{all}} of {text_prompt} <ImagePlaceholder>".strip()',
    ]
    for reference in ("REF_FREE", "REF_BASED"):
        for stage, field in ((1, "question"), (2, "question_and_exp")):
            lines.append(
                f'{reference}_APPEARANCE_ANSWER_TEMPLATE_STAGE_{stage} = """<ImagePlaceholder> '
                f'{reference} looks {{{field}}}"""'
            )
    for name in NAMES:
        lines.append(
            f'{name}_ANSWER_TEMPLATE = ("<ImagePlaceholder>" "answer {{question}}")'
        )
        lines.append(
            f'{name}_EVAL_TEMPLATE_STAGE_1 = "explain {{answer}} by {{structure_info}}"'
        )
        lines.append(
            f'{name}_EVAL_TEMPLATE_STAGE_2 = "<ImagePlaceholder>score {{answer_and_exp}} by '
            f'{{structure_info}}"'
        )
    for name in ["APPEARANCE", *NAMES, "MERGE"]:
        lines.append(
            f'{name}_SUMMARIZE_TEMPLATE_STAGE_1 = "<ImagePlaceholder>sum {{eval_result}} '
            f'{{structure_info}}"'
        )
        lines.append(
            f'{name}_SUMMARIZE_TEMPLATE_STAGE_2 = "<ImagePlaceholder>number '
            f'{{eval_result_and_exp}}"'
        )
    (source / "templates.py").write_text(
        "\n".join(lines) + "\nraise SystemExit('never run')\n"
    )
    return folder


def structured():
    from vieval_plugin.judges.t2i_eval.structure import Extraction, Question

    asked = [
        Question("appearance", f"Is the {e.name} real?", (e.name,))
        for e in SCENE.entities
    ]
    asked += [
        Question("intrinsic", f"{a.name} of {e.name}?", (e.name,))
        for e in SCENE.entities
        for a in e.attributes
    ]
    asked.append(Question("relationship", "Where is the cat?", ("cat", "mat")))
    return structure_text(
        Extraction(SCENE.entities, SCENE.relations, tuple(asked)), questions=True
    )


def test_models_that_answer_in_the_published_layout_work_as_they_are(tmp_path):
    assert (
        main(
            [
                "prompts",
                "import",
                "t2i_eval",
                str(checkout(tmp_path / "repo")),
                "--to",
                str(tmp_path / "packs"),
            ]
        )
        == 0
    )
    pack = packs.load(str(tmp_path / "packs" / "authors"))

    def answer(ask):
        assert isinstance(ask, Chat)
        if label_of(ask) == "extraction":
            return Text(structured())
        stage = label_of(ask).rsplit("/", 1)[1]
        said = {
            "answer": "# Answer\n## cat\n- question: ?\n- answer: it is there",
            "explanation": "# Evaluation\n- explanation: as asked",
        }
        return Text(said.get(stage, "8.5"))

    judge = t2i_eval.build(t2i_eval.T2IEvalOptions(), pack)
    played = play(judge(SCENE.sample), answer=answer)
    verdict = played.verdict
    assert (
        verdict.status,
        verdict.scores["O"],
        len(played.rounds),
        verdict.findings,
    ) == ("ok", 0.85, 8, ())
    assert played.calls == 1 + 2 * 2 + 3 * (4 + 1) + 6 + 2
    assert played.asked("extraction").messages[0].parts == (
        SCENE.picture,
        "Be an expert. Extract {all} of a cat on a mat",
    )
    explanation = played.asked("intrinsic/1/explanation")
    assert [m.role for m in explanation.messages] == ["user", "assistant", "user"]
    assert str(explanation.messages[2].parts[0]).startswith(
        "explain - question: existence of cat?\n- answer: it is there by # Structure"
    )
    score = played.asked("intrinsic/1/score")
    assert len(score.messages) == 1, (
        "the authors score in a conversation of its own, with the image"
    )
    assert [part for part in score.messages[0].parts if isinstance(part, Image)] == [
        SCENE.picture
    ]
    assert "- explanation: as asked" in str(score.messages[0].parts[1])
    assert "REF_FREE" in str(played.asked("appearance/1/explanation").messages[0].parts)
    assert (
        "### Appearance Quality Summary\n- explanation: as asked\n- score: 8.5"
        in str(played.asked("overall/explanation").messages[0].parts[1])
    )


def test_a_repository_that_lacks_a_wording_is_refused_in_one_line(tmp_path, vieval):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "x.py").write_text("EXTRACT_TEMPLATE = 'x'\n")
    printed = vieval(
        "prompts",
        "import",
        "t2i_eval",
        tmp_path / "repo",
        "--to",
        tmp_path / "packs",
        code=1,
    ).err
    assert "INTRINSIC_ANSWER_TEMPLATE" in printed
    assert not (tmp_path / "packs").exists()


def test_a_place_that_is_not_known_is_named(tmp_path, vieval):
    repo = checkout(tmp_path / "repo")
    file = repo / "src" / "prompt" / "templates.py"
    file.write_text(file.read_text().replace("{text_prompt}", "{text_prompt} {mood}"))
    assert (
        "unknown placeholder 'mood'"
        in vieval(
            "prompts", "import", "t2i_eval", repo, "--to", tmp_path / "packs", code=1
        ).err
    )
