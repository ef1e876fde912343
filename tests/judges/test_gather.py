"""Sub-programs advance in step, each with its own replies."""

from tests.playing import play
from vieval_plugin.judges.contests import gather


def counting(name, rounds):
    heard = []
    for number in range(rounds):
        heard += yield [f"{name}{number}"] * (number + 1)
    return heard


def run(program):
    played = play(program, answer=lambda ask: f"re {ask}")
    return played.rounds, played.result


def test_asks_of_all_that_are_under_way_are_one_list_and_results_come_in_order():
    waves, results = run(gather([counting("a", 1), counting("b", 0), counting("c", 2)]))
    assert waves == [["a0", "c0"], ["c1", "c1"]]
    assert results == [["re a0"], [], ["re c0", "re c1", "re c1"]]


def test_no_programs_ask_nothing_and_one_that_asks_an_empty_list_goes_on():
    def silent():
        heard = yield []
        return heard

    assert run(gather([])) == ([], [])
    assert run(gather([silent(), counting("a", 1)])) == ([["a0"]], [[], ["re a0"]])
