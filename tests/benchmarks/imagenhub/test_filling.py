"""`vieval prepare imagenhub` against a local server laid out as the authors' hosts are."""

import asyncio
import json
from collections import Counter
from dataclasses import asdict

import pytest

from tests.imagenhub_site import REDUCED, TIE, drawn, serving
from vieval_plugin.benchmarks import imagenhub
from vieval_plugin.benchmarks.benchmark import Prepared, Preparing
from vieval_plugin.benchmarks.imagenhub import conditions, filling
from vieval_plugin.benchmarks.imagenhub.conditions import Hosts
from vieval_plugin.benchmarks.imagenhub.filling import fill, summary_lines
from vieval_plugin.media.files import write_whole
from vieval_plugin.text.errors import VievalError


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
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file()
    }


def expected_files(site, tasks=tuple(REDUCED)):
    folders = {imagenhub.TASKS[task].folder for task in tasks}
    names = {"ratings": "imagenhub/human_ratings", "museum": "imagenhub/museum"}
    found = {}
    for path, body in site.files.items():
        _, source, folder, rest = path.split("/", 3)
        if folder in folders and rest != "dataset_lookup.json":
            found[f"{names[source]}/{folder}/{rest}"] = body
    return found


def without_lookups(files):
    return {
        name: body
        for name, body in files.items()
        if not name.endswith("dataset_lookup.json")
    }


class TestAll:
    async def test_fetches_exactly_what_the_benchmark_needs(self, site, tmp_path):
        report = await prepared(site, tmp_path)
        assert is_complete(report)
        files = files_below(tmp_path)
        assert without_lookups(files) == expected_files(site)
        assert len(files) - len(without_lookups(files)) == 7
        assert [imagenhub.missing(tmp_path, task) for task in REDUCED] == [[]] * 7

    async def test_keeps_the_text_columns_by_uid(self, site, tmp_path):
        await prepared(site, tmp_path, images=False)
        lookups = {}
        for task in REDUCED:
            path = (
                tmp_path
                / "imagenhub"
                / "museum"
                / imagenhub.TASKS[task].folder
                / "dataset_lookup.json"
            )
            lookups[task] = json.loads(path.read_bytes())
        assert len(lookups["tig"]) == 230
        assert lookups["tig"]["sample_120.jpg"] == {"prompt": "prompt 120 é"}
        assert lookups["tie"] == {
            "sample_34_1.jpg": {
                "instruction": "add a cat",
                "source_global_caption": "a dog",
            },
            "sample_34_2.jpg": {
                "instruction": "remove it",
                "target_global_caption": "a cat",
            },
        }
        assert lookups["mie"] == {"sample_34_1.jpg": {"instruction": "add a cat"}}
        found = lookups["sdig"]
        assert found == {"sample_3.jpg": {"prompt": "a <token> dog", "subject": "dog"}}
        assert lookups["sdie"] == {"sample_7.jpg": {"subject": "poop_emoji"}}
        assert lookups["mcic"]["sample_9.jpg"] == {
            "prompt": "a dog in a car",
            "concept1": "dog",
            "concept2": "car",
        }
        assert lookups["cig"]["sample_1_control_depth.jpg"] == {
            "text": "a man",
            "control_type": "depth",
        }

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
        assert without_lookups(files_below(tmp_path)) == expected_files(site, ("tie",))

    async def test_lasting_faults_stop_nothing_else(self, site, tmp_path):
        site.faults = {
            f"/museum/{TIE}/SDEdit/sample_34_1.jpg": ["status 404!"],
            f"/museum/{TIE}/SDEdit/sample_34_2.jpg": ["html!"],
            f"/museum/{TIE}/MagicBrush/sample_34_1.jpg": ["cut!"],
            f"/museum/{TIE}/MagicBrush/sample_34_2.jpg": ["hang!"],
        }
        report = await prepared(site, tmp_path, parts=["tie"], retries=1, timeout=0.3)
        assert not is_complete(report)
        images = report[-1]
        assert (images.present, images.downloaded_count, images.total) == (0, 2, 6)
        reasons = {f.url.removeprefix(site.base): f.reason for f in images.failed}
        found = reasons.pop(f"/museum/{TIE}/SDEdit/sample_34_2.jpg")
        assert "is not an image in a supported format" in found
        assert reasons == {
            f"/museum/{TIE}/SDEdit/sample_34_1.jpg": "404 not found",
            f"/museum/{TIE}/MagicBrush/sample_34_1.jpg": (
                "incomplete: the connection closed early"
            ),
            f"/museum/{TIE}/MagicBrush/sample_34_2.jpg": "timed out: no data for 0.3 s",
        }
        found = {path: site.hits[path] for path in site.faults}
        assert found == (dict(zip(site.faults, (1, 1, 2, 2), strict=True)))
        line = (
            "imagenhub/tie: 1 of 6 images missing (first: "
            f"{site.base}/museum/{TIE}/SDEdit/sample_34_1.jpg"
        )
        found = summary_lines(report)
        assert f"{line}, 404 not found); run the command again to retry" in found
        missing = {f.url.removeprefix(f"{site.base}/museum/") for f in images.failed}
        kept = expected_files(site, ("tie",))
        assert without_lookups(files_below(tmp_path)) == {
            name: body
            for name, body in kept.items()
            if name.removeprefix("imagenhub/museum/") not in missing
        }

        site.faults.clear()
        site.hits.clear()
        assert is_complete(await prepared(site, tmp_path, parts=["tie"]))
        assert site.hits == Counter({f"/museum/{name}": 1 for name in missing})
        assert without_lookups(files_below(tmp_path)) == kept

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
        for rater in (1, 2, 3):
            site.files[f"/ratings/{TIE}/Text-Guided_IE_rater{rater}.tsv"] += (
                f"\r\n{uid}\t[0,0]\t[0,0]\t[0,0]".encode()
            )
        report = await prepared(site, tmp_path, parts=["tie"])
        assert (
            "a uid may contain only letters, digits, _, . and -, "
            in summary_lines(report)[0]
        )
        assert set(site.hits) == {
            f"/ratings/{TIE}/Text-Guided_IE_rater{rater}.tsv" for rater in (1, 2, 3)
        }


class TestConditions:
    async def test_a_rated_uid_the_hub_lacks_is_an_error(self, site, tmp_path):
        del site.rows["tie"][1]
        report = await prepared(site, tmp_path, parts=["tie"])
        (line,) = (line for line in summary_lines(report) if "conditions" in line)
        assert "dataset ImagenHub/Text_Guided_Image_Editing, split filtered" in line
        assert "no row for 1 of 2 rated uids (first: sample_34_2.jpg)" in line
        assert not is_complete(report)
        assert not (
            tmp_path / "imagenhub" / "museum" / TIE / "dataset_lookup.json"
        ).exists()

    @pytest.mark.parametrize("fault", ["status 501!", "html!", "status 404!"])
    async def test_the_museum_serves_where_the_hub_fails(self, site, tmp_path, fault):
        site.faults["/hub/rows"] = [fault]
        body = json.dumps(
            {uid: {"instruction": "x"} for uid in REDUCED["tie"][1]}
        ).encode()
        site.files[f"/museum/{TIE}/dataset_lookup.json"] = body
        report = await prepared(site, tmp_path, parts=["tie"], retries=1)
        assert is_complete(report)
        assert any(
            "conditions come from the museum, because the Hugging Face Hub failed"
            in line
            for line in summary_lines(report)
        )
        assert (
            tmp_path / "imagenhub" / "museum" / TIE / "dataset_lookup.json"
        ).read_bytes() == body

    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            ({"img_id": "34", "instruction": "x"}, "no column 'turn_index'"),
            (
                {"img_id": "34", "turn_index": 1, "instruction": None},
                "instruction of sample_34_1.jpg must be a string",
            ),
        ],
    )
    async def test_rows_need_their_columns(self, site, tmp_path, row, reason):
        site.rows["tie"][0] = row
        report = await prepared(site, tmp_path, parts=["tie"], images=False)
        (failed,) = report[-1].failed
        assert failed.reason.startswith(
            "404 not found; the Hugging Face Hub also failed: "
        )
        assert reason in failed.reason

    async def test_a_broken_lookup_is_replaced(self, site, tmp_path):
        path = tmp_path / "imagenhub" / "museum" / TIE / "dataset_lookup.json"
        mirrored = json.dumps(
            {uid: {"instruction": "mine"} for uid in REDUCED["tie"][1]}
        ).encode()
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
