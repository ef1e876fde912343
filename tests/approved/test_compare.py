"""`vieval compare`: which judge agrees best."""

from tests.builders import a_provenance, a_rated_folder, poor, right


def partly(has_score):
    """A judge near people's ratings that refuses the other samples."""
    return lambda number, people: right(number, people) if has_score(number) else None


def test_three_judges(approve):
    for name, score in {"poor": poor, "right": right, "alike": right}.items():
        a_rated_folder(name, score)
    approve("vieval compare poor right alike --seed 7 --out out")


def test_overall_score_leads(approve):
    a_rated_folder("poor", poor, source=a_provenance(model="poor", aspects=("SC", "O")))
    a_rated_folder("right", source=a_provenance(model="right", aspects=("SC", "O")))
    a_rated_folder("only", lambda number, people: right(number + 1, people))
    approve("vieval compare poor right only")


def test_one_judge_and_two_benchmarks(approve):
    a_rated_folder("right")
    a_rated_folder("poor", poor)
    a_rated_folder("elsewhere", benchmark="imagenhub")
    approve("vieval compare right --out out", "vieval compare right poor elsewhere")


def test_too_few_samples_in_common(approve):
    a_rated_folder("even", partly(lambda number: number // 2 % 2))
    a_rated_folder("odd", partly(lambda number: not number // 2 % 2))
    a_rated_folder("few", partly(lambda number: number >= 56))
    a_rated_folder("poor", poor)
    a_rated_folder("right")
    approve(
        "vieval compare even odd",
        "vieval compare poor right few",
        "vieval report poor right few --out r",
        "cat r/report.md",
    )
