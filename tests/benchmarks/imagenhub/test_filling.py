"""`vieval prepare imagenhub` against a local server laid out as the authors' hosts are."""

import asyncio
import json
from collections import Counter
from dataclasses import asdict

import pytest

from tests.imagenhub_site import REDUCED, TIE, drawn, serving
from tests.tables import table
from vieval_plugin.benchmarks import imagenhub
from vieval_plugin.benchmarks.benchmark import Prepared, Preparing
from vieval_plugin.benchmarks.imagenhub import conditions, filling
from vieval_plugin.benchmarks.imagenhub.conditions import Hosts
from vieval_plugin.benchmarks.imagenhub.filling import fill, summary_lines
from vieval_plugin.media.files import write_whole
from vieval_plugin.text.errors import VievalError

FIRST = "sample_34_1.jpg"


@pytest.fixture
async def site(monkeypatch):
    """A whole and faultless site for the reduced tasks."""
    async with serving(monkeypatch) as site:
        yield site


async def prepared(site, root, **options):
    """`fill` as the command calls it, in a thread with a loop of its own."""
    return await asyncio.to_thread(
        lambda: fill(root, hosts=site.hosts(), **{"timeout": 5, **options})
    )


def is_complete(reports):
    return not any(report.failed for report in reports)


def files_below(root):
    """Files by path, without the conditions."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and path.name != "dataset_lookup.json"
    }


def conditions_of(root, task):
    folder = root / "imagenhub" / "museum" / imagenhub.TASKS[task].folder
    return folder / "dataset_lookup.json"


def expected_files(site, tasks=tuple(REDUCED)):
    folders = {imagenhub.TASKS[task].folder for task in tasks}
    names = {"ratings": "imagenhub/human_ratings", "museum": "imagenhub/museum"}
    found = {}
    for path, body in site.files.items():
        _, source, folder, rest = path.split("/", 3)
        if folder in folders and rest != "dataset_lookup.json":
            found[f"{names[source]}/{folder}/{rest}"] = body
    return found


class TestAll:
    async def test_fetches_exactly_what_the_benchmark_needs(self, site, tmp_path):
        report = await prepared(site, tmp_path)
        assert is_complete(report)
        assert files_below(tmp_path) == expected_files(site)
        assert len([*tmp_path.rglob("dataset_lookup.json")]) == 7
        assert [imagenhub.missing(tmp_path, task) for task in REDUCED] == [[]] * 7

    @pytest.mark.parametrize(*table("text_columns.jsonl"))
    async def test_keeps_the_text_columns_by_uid(
        self, site, tmp_path, task, count, found
    ):
        await prepared(site, tmp_path, parts=[task], images=False)
        lookup = json.loads(conditions_of(tmp_path, task).read_bytes())
        assert found.items() <= lookup.items()
        assert len(lookup) == count

    async def test_a_second_run_fetches_nothing(self, site, tmp_path):
        first = await prepared(site, tmp_path)
        site.hits.clear()
        second = await prepared(site, tmp_path)
        assert not site.hits
        assert is_complete(second)
        found = [part.present for part in second]
        assert found == [part.downloaded_count for part in first]

    async def test_one_task_without_images(self, site, tmp_path):
        report = await prepared(site, tmp_path, parts=["tie"], images=False)
        assert [(part.part, part.kind, part.downloaded_count) for part in report] == [
            ("tie", "ratings", 3),
            ("tie", "conditions", 1),
        ]
        assert not (tmp_path / "imagenhub" / "museum" / TIE / "input").exists()

    def test_unknown_task(self, tmp_path):
        with pytest.raises(VievalError, match="unknown part 'tei' of imagenhub"):
            fill(tmp_path, parts=["tei"])

    def test_public_hosts_are_reached_at_the_documented_addresses(self, tmp_path):
        hosts = Hosts()
        ratings = filling._ratings(tmp_path, hosts, "mcic")[0]
        assert ratings.url.endswith(
            "/ImagenHub_Multi-Concept_IC/Multi-Subject_IG_rater1.tsv"
        )
        assert conditions.rows_url(hosts.hub, imagenhub.TASKS["tig"].hub, 0) == (
            "https://datasets-server.huggingface.co/rows?dataset=ImagenHub/Text_to_Image&config=default&split=eval&offset=0&length=100"
        )
        assert filling._images(tmp_path, hosts, "tie", ["sample_34_1.jpg"])[0].url == (
            "https://chromaica.github.io/Museum/ImagenHub_Text-Guided_IE/input/sample_34_1.jpg"
        )


class TestBenchmark:
    async def test_prepares_from_the_sources_it_names(self, site, tmp_path):
        asked = Preparing(["tie"], images=False, hosts=asdict(site.hosts()))
        assert set(asked.hosts) == set(imagenhub.BENCHMARK.hosts)
        prepared = await asyncio.to_thread(imagenhub.BENCHMARK.prepare, tmp_path, asked)
        assert prepared == Prepared(
            (
                "imagenhub/tie: ratings complete, 3 files (3 fetched now)",
                "imagenhub/tie: conditions complete, 1 file (1 fetched now)",
            ),
            True,
        )

    def test_refuses_what_it_has_not(self, tmp_path):
        assert imagenhub.BENCHMARK.prepare
        with pytest.raises(VievalError, match="imagenhub has one image per sample"):
            imagenhub.BENCHMARK.prepare(tmp_path, Preparing(count=3))


class TestFaults:
    @pytest.mark.parametrize(
        "faults",
        [["status 500", "status 500"], ["cut"], ["status 429 0"], ["status 503"]],
    )
    async def test_passing_faults_leave_no_trace(self, site, tmp_path, faults):
        path = f"/museum/{TIE}/SDEdit/sample_34_1.jpg"
        site.faults[path] = list(faults)
        report = await prepared(site, tmp_path, parts=["tie"])
        assert is_complete(report)
        assert site.hits[path] == len(faults) + 1
        assert files_below(tmp_path) == expected_files(site, ("tie",))

    async def test_lasting_faults_stop_nothing_else(self, site, tmp_path):
        cut = f"/museum/{TIE}/MagicBrush/sample_34_1.jpg"
        hanging = f"/museum/{TIE}/MagicBrush/sample_34_2.jpg"
        lost = f"/museum/{TIE}/SDEdit/sample_34_1.jpg"
        page = f"/museum/{TIE}/SDEdit/sample_34_2.jpg"
        faults = {lost: "status 404!", page: "html!", cut: "cut!", hanging: "hang!"}
        site.faults = {path: [fault] for path, fault in faults.items()}
        report = await prepared(site, tmp_path, parts=["tie"], retries=1, timeout=0.3)
        assert not is_complete(report)
        images = report[-1]
        assert (images.present, images.downloaded_count, images.total) == (0, 2, 6)
        reasons = {f.url.removeprefix(site.base): f.reason for f in images.failed}
        assert "is not an image in a supported format" in reasons.pop(page)
        assert reasons == {
            lost: "404 not found",
            cut: "incomplete: the connection closed early",
            hanging: "timed out: no data for 0.3 s",
        }
        found = [site.hits[path] for path in (lost, page, cut, hanging)]
        assert found == [1, 1, 2, 2]
        line = f"imagenhub/tie: 1 of 6 images missing (first: {site.base}{lost}"
        found = summary_lines(report)
        assert f"{line}, 404 not found); run the command again to retry" in found
        missing = {f.url.removeprefix(f"{site.base}/museum/") for f in images.failed}
        kept = expected_files(site, ("tie",))
        assert files_below(tmp_path) == {
            name: body
            for name, body in kept.items()
            if name.removeprefix("imagenhub/museum/") not in missing
        }

        site.faults.clear()
        site.hits.clear()
        assert is_complete(await prepared(site, tmp_path, parts=["tie"]))
        assert site.hits == Counter({f"/museum/{name}": 1 for name in missing})
        assert files_below(tmp_path) == kept

    async def test_like_failures_are_one_line(self, site, tmp_path):
        for uid in REDUCED["tie"][1]:
            del site.files[f"/museum/{TIE}/input/{uid}"]
        lines = summary_lines(await prepared(site, tmp_path, parts=["tie"]))
        found = [line.split(" (first")[0] for line in lines if "missing" in line]
        assert found == ["imagenhub/tie: 2 of 6 images missing"]

    async def test_missing_ratings_spare_other_tasks(self, site, tmp_path):
        del site.files[f"/ratings/{TIE}/Text-Guided_IE_rater2.tsv"]
        report = await prepared(site, tmp_path, parts=["tie", "mie"])
        assert [(part.part, part.kind, bool(part.failed)) for part in report] == [
            ("tie", "ratings", True),
            ("mie", "ratings", False),
            ("mie", "conditions", False),
            ("mie", "images", False),
        ]
        assert "Text-Guided_IE_rater2.tsv, 404 not found)" in summary_lines(report)[0]

    async def test_ratings_that_are_a_web_page(self, site, tmp_path):
        site.files[f"/ratings/{TIE}/Text-Guided_IE_rater2.tsv"] = b"<html>moved</html>"
        report = await prepared(site, tmp_path, parts=["tie"])
        found = summary_lines(report)[0]
        assert "not a table of ratings: the column uid is missing" in found

    @pytest.mark.parametrize("uid", ["../../evil.jpg", ".hidden", "a b.jpg"])
    async def test_uids_that_are_no_file_names(self, site, tmp_path, uid):
        ratings = [f"/ratings/{TIE}/Text-Guided_IE_rater{n}.tsv" for n in (1, 2, 3)]
        for path in ratings:
            site.files[path] += f"\r\n{uid}\t[0,0]\t[0,0]\t[0,0]".encode()
        report = await prepared(site, tmp_path, parts=["tie"])
        said = "a uid may contain only letters, digits, _, . and -, "
        assert said in summary_lines(report)[0]
        assert set(site.hits) == set(ratings)


class TestConditions:
    async def test_a_rated_uid_the_hub_lacks_is_an_error(self, site, tmp_path):
        del site.rows["tie"][1]
        report = await prepared(site, tmp_path, parts=["tie"])
        (line,) = (line for line in summary_lines(report) if "conditions" in line)
        assert "dataset ImagenHub/Text_Guided_Image_Editing, split filtered" in line
        assert "no row for 1 of 2 rated uids (first: sample_34_2.jpg)" in line
        assert not is_complete(report)
        assert not conditions_of(tmp_path, "tie").exists()

    @pytest.mark.parametrize("fault", ["status 501!", "html!", "status 404!"])
    async def test_the_museum_serves_where_the_hub_fails(self, site, tmp_path, fault):
        site.faults["/hub/rows"] = [fault]
        lookup = {uid: {"instruction": "x"} for uid in REDUCED["tie"][1]}
        body = json.dumps(lookup).encode()
        site.files[f"/museum/{TIE}/dataset_lookup.json"] = body
        report = await prepared(site, tmp_path, parts=["tie"], retries=1)
        assert is_complete(report)
        said = "conditions come from the museum, because the Hugging Face Hub failed"
        assert said in "\n".join(summary_lines(report))
        assert conditions_of(tmp_path, "tie").read_bytes() == body

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            ({"instruction": "x"}, "no column 'turn_index'"),
            ({"turn_index": 1, "instruction": None}, f"instruction of {FIRST} must be"),
        ],
    )
    async def test_rows_need_their_columns(self, site, tmp_path, row, reason):
        site.rows["tie"][0] = {"img_id": "34", **row}
        report = await prepared(site, tmp_path, parts=["tie"], images=False)
        [failed] = report[-1].failed
        said = "404 not found; the Hugging Face Hub also failed: "
        assert failed.reason.startswith(said)
        assert reason in failed.reason

    async def test_a_broken_lookup_is_replaced(self, site, tmp_path):
        path = conditions_of(tmp_path, "tie")
        lookup = {uid: {"instruction": "mine"} for uid in REDUCED["tie"][1]}
        mirrored = json.dumps(lookup).encode()
        write_whole(path, mirrored, "folder")
        await prepared(site, tmp_path, parts=["tie"], images=False)
        assert path.read_bytes() == mirrored
        path.write_bytes(mirrored[:20])
        await prepared(site, tmp_path, parts=["tie"], images=False)
        text = json.loads(path.read_bytes())["sample_34_1.jpg"]["instruction"]
        assert text == "add a cat"

    async def test_a_row_count_out_of_all_proportion(self, site, tmp_path, monkeypatch):
        monkeypatch.setattr(conditions, "MAX_ROWS", 100)
        report = await prepared(site, tmp_path, parts=["tig"], images=False)
        found = summary_lines(report)[-1]
        assert "num_rows_total must be between 0 and 100, got 230" in found


class TestImages:
    def test_a_cut_image_is_refused(self):
        with pytest.raises(ValueError, match="is not an image|cut off"):
            filling._check_image(drawn("x")[:-100])

    async def test_a_file_that_is_no_image_is_fetched_again(self, site, tmp_path):
        path = tmp_path / "imagenhub" / "museum" / TIE / "input" / "sample_34_1.jpg"
        write_whole(path, b"<html>sign in</html>", "folder")
        assert is_complete(await prepared(site, tmp_path, parts=["tie"]))
        assert path.read_bytes() == site.files[f"/museum/{TIE}/input/sample_34_1.jpg"]
