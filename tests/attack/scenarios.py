"""The scenarios: each attacks one promise and gives one line of the table."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from . import files
from .checks import Row, check, verdicts_of
from .clients import (
    LIMITS,
    Client,
    Ended,
    Workshop,
    all_ended,
    lmms_eval,
    options,
    score,
)
from .fault_server import FaultServer, Plan
from .faults import BY_NAME, CHAT, FAULTS, LIKELIHOOD, NO_KEY, TRANSPORT, Fault
from .files import Known

CONCURRENT = 64
_VIESCORE, _VQASCORE = "vieval_demo_viescore", "vieval_demo_vqascore"
_LMMS_START = 90.0  # seconds that lmms-eval may take before its first question, on two shared cores
_ENDED = (0, 1)
_FOR_GOOD = (
    "http_404",
    "429_retry_0",
    "429_retry_huge",
    "silence",
    "slow_loris",
    "redirect_307",
    "closed_without_a_byte",
)


@dataclass
class Size:
    """How much is tried."""

    samples: int = 2000
    lmms: int = 300
    kills: int = 10
    lmms_kills: int = 2
    seed: int = 0
    short: bool = False

    @property
    def some(self) -> int:
        """Samples of the scenarios whose point is not their number."""
        return max(40, min(300, self.samples // 6))


@dataclass
class Attack:
    """What all scenarios share. `pace` is what a request takes on this machine when nothing goes
    wrong.
    """

    size: Size
    workshop: Workshop
    server: FaultServer
    say: Callable[[str], None]
    pace: float = 0.05
    begin: float = 10.0  # seconds that a process takes before it asks anything
    answers: dict[str, bytes] = field(default_factory=dict)

    def apart(self, server: FaultServer) -> Attack:
        """The same for a scenario that goes on beside the others, with a server of its own."""
        return replace(self, server=server, say=lambda text: None)

    def folder(self, name: str) -> Path:
        path = self.workshop.folder / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def plan(self, name: str, **about: Any) -> None:
        """Let the server begin anew, with draws of its own for this scenario."""
        self.server.forget()
        self.server.plan = Plan(
            seed=random.Random(f"{name} {self.size.seed}").getrandbits(32), **about
        )

    def bound(self, questions: int) -> float:
        """Seconds that a run may take: its start, work at a quarter of the pace, waits for faults,
        and a tail.

        The tail is that of one question whose tries begin anew, because no other is answered
        meanwhile.
        """
        return (
            2 * self.begin
            + questions * (4 * self.pace + 0.015)
            + 4 * LIMITS.longest_question
        )

    def options(self, folder: Path, **more: Any) -> Path:
        return options(
            folder / "vieval.yaml",
            self.server.base_url,
            folder / "replies.sqlite",
            **more,
        )

    def run(
        self, command: list[str | Path], options: Path, bound: float, **about: Any
    ) -> Ended:
        return self.workshop.start(command, options, **about).wait(bound + 30.0)

    def faults(self, *of: str | None) -> list[Fault]:
        return [one for one in FAULTS if one.of in (None, *of)]

    def watch(self, client: Client, answers: int, seconds: float) -> bool:
        """Wait until the server has given so many answers; False if the client ended before."""
        until = time.monotonic() + seconds
        while client.running() and time.monotonic() < until:
            if self.server.answers() >= answers:
                return True
            time.sleep(0.02)
        return False


# -- vieval score


def healthy(attack: Attack) -> Row:
    """Nothing goes wrong: what the verdicts are, and how fast this machine is."""
    row, folder = Row("nothing goes wrong"), attack.folder("healthy")
    samples, known = files.sound_samples(folder, attack.size.some, attack.size.seed)
    attack.plan(row.scenario)
    client = attack.workshop.start(
        score(samples, folder / "out.jsonl"), attack.options(folder)
    )
    while client.running() and not attack.server.asked and not attack.server.probes:
        time.sleep(0.02)
    attack.begin = time.monotonic() - client.began
    ended = client.wait(300.0)
    row.ended(ended, "healthy run", 300.0, (0,))
    attack.pace = max(
        0.002, (ended.seconds - attack.begin) / max(1, len(attack.server.asked))
    )
    _check_file(row, folder / "out.jsonl", known, "viescore", attack)
    attack.answers["some"] = _bytes(folder / "out.jsonl")
    again = attack.run(
        score(samples, folder / "again.jsonl"), folder / "vieval.yaml", 60.0
    )
    row.ended(again, "the same again", 60.0, (0,))
    row.counted(attack.server)
    if _bytes(folder / "again.jsonl") != attack.answers["some"]:
        row.blame("the same run again gave other bytes")
    return row


def many_faults(judge: str, number: int) -> Callable[[Attack], Row]:
    """All faults at once, 40% of requests; the first samples always meet one and the same."""

    def scenario(attack: Attack) -> Row:
        row, folder = Row(f"faults, {judge}"), attack.folder(f"faults-{judge}")
        kinds = attack.faults(LIKELIHOOD if judge == "vqascore" else CHAT)
        cursed = {f"cursed by {kind.name}": kind for kind in kinds}
        samples, known = files.sound_samples(
            folder,
            max(number, len(cursed)),
            attack.size.seed,
            list(cursed),
            files.PROMPTED if judge == "vqascore" else tuple(files.KINDS),
        )
        attack.plan(row.scenario, kinds=kinds, cursed=cursed)
        written, bound = attack.options(folder), attack.bound(2 * len(known))
        out = folder / "out.jsonl"
        row.ended(
            attack.run(score(samples, out, judge), written, bound), "run", bound, _ENDED
        )
        _check_file(row, out, known, judge, attack)
        attack.say(f"{row.scenario}: again, without faults")
        again, later, bound = folder / "again.jsonl", Row(""), attack.bound(300)
        attack.server.plan = Plan()
        row.ended(
            attack.run(score(samples, again, judge), written, bound),
            "rerun",
            bound,
            (0,),
        )
        _check_file(later, again, known, judge, attack)
        row.merge(later, "rerun")
        _blame_failed(row, _verdicts(later, again))
        row.counted(attack.server)
        return row

    return scenario


def kills(attack: Attack) -> Row:
    """kill -9 again and again; in the end the bytes are those of a run that nobody disturbed."""
    row, folder = Row("kill -9, vieval score"), attack.folder("kills")
    number = attack.size.kills - attack.size.lmms_kills
    draw = random.Random(f"kills {attack.size.seed}")
    # the same samples, folder and options as the run that nobody disturbed, and a store of its own
    home = attack.folder("healthy")
    samples, known = files.sound_samples(home, attack.size.some, attack.size.seed)
    attack.plan(row.scenario, kinds=TRANSPORT, pause=0.02)
    out, store = (
        home / "killed.jsonl",
        folder / "replies.sqlite",
    )  # beside the images, whose paths stand in it
    written = options(folder / "vieval.yaml", attack.server.base_url, store)
    bound, moments = attack.bound(2 * len(known)), list[float]()
    for turn in range(3 * number):
        if row.kills == number:
            break
        attack.say(f"kill {row.kills + 1} of {number}")
        # at its start, soon after, in the middle, and the last one when all has been answered
        more = (
            draw.choice((0, 1, draw.randrange(len(known) // 2)))
            if row.kills < number - 1
            else 10**9
        )
        client = attack.workshop.start(score(samples, out), written)
        if attack.server.answers() < _questions(known):
            attack.watch(
                client, min(attack.server.answers() + more, _questions(known)), bound
            )
            time.sleep(draw.random() * (0.2 if turn % 2 else 0.02))
        else:  # nothing is left to ask: it reads its store and writes
            time.sleep(draw.random() * 1.5 * attack.begin)
        moments.append(_killed(row, client))
        if out.exists():
            _verdicts(row, out)  # whole or not at all
    if row.kills < number:
        row.blame(f"only {row.kills} of {number} kills came in time")
    row.ended(
        _until_answered(attack, row, score(samples, out), written, out, bound),
        "after the kills",
        bound,
        (0,),
    )
    row.counted(attack.server, allowed_again=row.kills * CONCURRENT)
    _blame_old(row, attack, moments)
    _check_file(row, out, known, "viescore", attack)
    if _bytes(out) != attack.answers["some"]:
        row.blame(
            "the verdicts are not byte for byte those of a run that nobody disturbed"
        )
    return row


def two_processes(attack: Attack) -> Row:
    """Two runs of the same samples at once on one store: each question is asked by one of them."""
    row, folder = Row("two processes"), attack.folder("two")
    samples, known = files.sound_samples(folder, attack.size.some, attack.size.seed + 1)
    attack.plan(row.scenario, kinds=attack.faults(CHAT), pause=0.05)
    written, bound = attack.options(folder), attack.bound(4 * len(known))
    outs = [folder / "one.jsonl", folder / "other.jsonl"]

    def both(what: str, codes: tuple[int, ...]) -> list[Client]:
        clients = [attack.workshop.start(score(samples, out), written) for out in outs]
        for place, ended in enumerate(all_ended(clients, bound + 30.0)):
            row.ended(ended, f"{what}, process {place + 1}", bound, codes)
        return clients

    clients = both("both", _ENDED)
    one, other = (_verdicts(row, out) for out in outs)
    for client, verdicts in zip(clients, (one, other), strict=True):
        check(row, known, verdicts, "viescore", attack.server.asked.copy(), client.key)
    # what failed for one of them, or came empty, is no reply that the other could use
    shaky = {
        asked.question
        for asked in attack.server.asked
        if asked.fault.final and not asked.fault.kept
    }
    # so does a question that met a fault at each of its few tries; `check` has accounted for it
    failed = {
        uid
        for verdicts in (one, other)
        for uid, verdict in verdicts.items()
        if verdict["status"] == "api_error"
    }
    sure = [
        sample.uid
        for sample in known
        if sample.uid not in failed
        and not shaky & {name for name, _ in sample.questions("viescore").values()}
    ]
    differ = [uid for uid in sure if one.get(uid) != other.get(uid)]
    if differ:
        row.blame(
            f"{len(differ)} verdicts differ between the two files: {', '.join(differ[:5])}"
        )
    if at_once := attack.server.asked_at_once():
        row.blame(
            f"{at_once} questions asked while a good answer to them was under way"
        )
    attack.say(f"{row.scenario}: again, without faults")
    attack.server.plan = Plan(pause=0.02)
    both("both again, without faults", (0,))
    row.counted(attack.server)
    if _bytes(outs[0]) != _bytes(outs[1]):
        row.blame("the two files differ in the end")
    return row


# -- lmms-eval


def lmms(attack: Attack) -> Row:
    """All faults under lmms-eval, and then again on a server that is well."""
    row, folder = Row("faults, lmms-eval"), attack.folder("lmms")
    attack.plan(row.scenario, kinds=attack.faults(CHAT, LIKELIHOOD))
    written, limit = attack.options(folder), _limit(attack)
    bound = _LMMS_START + attack.bound(2 * attack.size.lmms)
    ended = attack.run(
        lmms_eval(f"{_VIESCORE},{_VQASCORE}", limit, folder / "out"), written, bound
    )
    row.ended(ended, "run", bound, _ENDED)
    _check_lmms(row, folder / "out", limit, attack)
    attack.say(f"{row.scenario}: again, without faults")
    attack.server.plan = Plan()
    ended = attack.run(
        lmms_eval(f"{_VIESCORE},{_VQASCORE}", limit, folder / "again"), written, bound
    )
    row.ended(ended, "rerun", bound, (0,))
    later = Row("")
    _check_lmms(later, folder / "again", limit, attack)
    row.merge(later, "rerun")
    _blame_failed(row, _lmms_verdicts(folder / "again"))
    row.counted(attack.server)
    return row


def lmms_kills(attack: Attack) -> Row:
    """kill -9 of lmms-eval, and the same command to its end: the results of a run that nobody
    disturbed.
    """
    row, folder = Row("kill -9, lmms-eval"), attack.folder("lmms-kills")
    draw = random.Random(f"lmms kills {attack.size.seed}")
    limit = max(2, _limit(attack) // 2)
    attack.plan(row.scenario, kinds=TRANSPORT, pause=0.02)
    written = attack.options(folder, concurrent=16)
    bound = _LMMS_START + attack.bound(limit * 18)
    moments = list[float]()
    for count in range(attack.size.lmms_kills):
        attack.say(f"kill {count + 1} of {attack.size.lmms_kills}, lmms-eval")
        client = attack.workshop.start(
            lmms_eval(_VIESCORE, limit, folder / f"killed{count}"), written
        )
        attack.watch(
            client, attack.server.answers() + draw.randrange(1, limit * 5), bound
        )
        moments.append(_killed(row, client))
    for turn in range(4):
        attack.say(f"{row.scenario}: to its end")
        out = folder / f"out{turn}"
        row.ended(
            attack.run(lmms_eval(_VIESCORE, limit, out), written, bound),
            "after the kills",
            bound,
            _ENDED,
        )
        if not any(
            verdict["status"] == "api_error" for verdict in _lmms_verdicts(out).values()
        ):
            break
        attack.server.plan = Plan()
    row.counted(attack.server, allowed_again=row.kills * 16)
    _blame_old(row, attack, moments)
    _check_lmms(row, out, limit, attack, judges=("viescore",))
    attack.say(f"{row.scenario}: undisturbed, to compare")
    attack.server.plan = Plan()
    calm = options(
        folder / "calm" / "vieval.yaml",
        attack.server.base_url,
        folder / "calm" / "r.sqlite",
        16,
    )
    row.ended(
        attack.run(lmms_eval(_VIESCORE, limit, folder / "calm" / "out"), calm, bound),
        "undisturbed",
        bound,
        (0,),
    )
    if _lmms_verdicts(out) != _lmms_verdicts(folder / "calm" / "out"):
        row.blame("the verdicts are not those of a run that nobody disturbed")
    if _lmms_results(out) != _lmms_results(folder / "calm" / "out"):
        row.blame("the statistics are not those of a run that nobody disturbed")
    return row


# -- servers that never get well, files that are made to hurt, disks that are full


def servers_for_good(attack: Attack) -> Row:
    """Servers that will not answer ever again, each with a client of its own: every run ends, in
    one line.
    """
    row, patience = Row("servers that stay bad"), 2.0
    samples, known = files.sound_samples(attack.folder("bad"), 30, attack.size.seed + 2)
    kinds = [NO_KEY, *(BY_NAME[name] for name in _FOR_GOOD)]
    tried = [(kind, 0) for kind in kinds] + [
        (BY_NAME[name], 20) for name in ("http_401", "silence", "429_retry_0")
    ]
    # a server that asks for rests is given them, doubled each time, up to half a minute, before
    # patience ends
    bound, rests = 2 * len(tried) * attack.begin + 4 * patience + 10.0, 100.0
    with ExitStack() as stack:
        servers = [stack.enter_context(FaultServer(Plan(pause=0.05))) for _ in tried]
        clients = list[Client]()
        for (kind, after), server in zip(tried, servers, strict=True):
            folder = attack.folder(f"bad/{kind.name}-{after}")
            server.plan = Plan(pause=0.05, always=kind, spared=after)
            written = options(
                folder / "v.yaml",
                server.base_url,
                folder / "replies.sqlite",
                8,
                patience=patience,
            )
            clients.append(
                attack.workshop.start(score(samples, folder / "out.jsonl"), written)
            )
        found = all_ended(clients, bound + rests + 30.0)
        for (kind, after), server, ended in zip(tried, servers, found, strict=True):
            what = (
                f"{kind.name} {f'after {after} answers' if after else 'from the start'}"
            )
            row.ended(ended, what, bound + rests * ("retry" in kind.name), (1,))
            row.samples += len(known)
            tries = len(server.asked) + server.probes
            if tries > after + 100:
                row.blame(
                    f"{what}: {tries - after} requests in vain in {ended.seconds:.0f} s, at most "
                    "100 expected"
                )
            row.counted(server)
    return row


def hostile_files(attack: Attack) -> Row:
    """Bad lines and bad images are those samples' verdicts; options that bite end in one line."""
    row, folder = Row("hostile files"), attack.folder("hostile")
    samples, lines, known = files.hostile_samples(folder, attack.size.seed)
    attack.plan(row.scenario)
    written = attack.options(folder)
    ended = attack.run(score(samples, folder / "out.jsonl"), written, 60.0)
    row.ended(ended, "hostile lines", 60.0, _ENDED)
    verdicts = _verdicts(row, folder / "out.jsonl")
    _check_file(row, folder / "out.jsonl", known, "viescore", attack)
    for line in lines:
        verdict = verdicts.get(line.uid)
        row.samples += not line.what.startswith("a sound")
        if verdict is None:
            row.lost += 1
            row.blame(f"{line.what}: no verdict called {line.uid!r}")
        elif line.may and verdict["status"] not in line.may:
            row.blame(
                f"{line.what}: {verdict['status']}, expected {' or '.join(line.may)}"
            )
    if not verdicts:
        row.blame(f"no verdicts at all: {ended.last_line}")
    row.counted(attack.server)
    return row


def full_disk(attack: Attack) -> Row:
    """The disk is full: one line, nothing half-written, nothing paid for that could not be kept."""
    row, folder = Row("full disk"), attack.folder("disk")
    samples, known = files.sound_samples(folder, attack.size.some, attack.size.seed + 3)
    written, out = attack.options(folder, concurrent=8), folder / "out.jsonl"
    attack.plan(row.scenario, pause=0.01)
    bound = attack.bound(2 * len(known))

    ended = attack.run(score(samples, out), written, bound, wrapped="ulimit -f 192")
    row.ended(ended, "files of at most 96 kB", bound, (1,))
    if out.exists():
        row.blame("a file of verdicts was written though it cannot have been whole")
    row.ended(
        attack.run(score(samples, out), written, bound), "with room again", bound, (0,)
    )
    row.counted(attack.server, allowed_again=8)
    _check_file(row, out, known, "viescore", attack)

    if subprocess.run(
        ["unshare", "-rm", "true"], capture_output=True, check=False
    ).returncode:
        attack.say("no small disk here: namespaces are not permitted")
        return row
    disk = folder / "small"
    for what, kilobytes, filled in (
        ("a disk of 150 kB", 150, 0),
        ("a disk that is full", 40, 40),
    ):
        attack.server.forget()
        disk.mkdir(exist_ok=True)
        mounted = f"mount -t tmpfs -o size={kilobytes}k tmpfs {disk}"
        if filled:
            mounted += f" && (dd if=/dev/zero of={disk}/full bs=1k count={filled} 2>/dev/null || true)"
        store = (
            attack.folder("disk/elsewhere") / "replies.sqlite"
            if filled
            else disk / "replies.sqlite"
        )
        store.unlink(missing_ok=True)
        written = options(folder / "small.yaml", attack.server.base_url, store)
        ended = attack.run(
            score(samples, disk / "out.jsonl"),
            written,
            bound,
            wrapped=mounted,
            own_mounts=True,
        )
        row.ended(ended, what, bound, (1,))
        if filled and attack.server.asked:
            row.blame(
                f"{what}: {len(attack.server.asked)} questions were paid for first"
            )
    return row


def leaks(attack: Attack) -> Row:
    """After all that: no key in any file, and nobody but the user may read the stores."""
    row = Row("leaks")
    if files := attack.workshop.leaked():
        row.leaks += len(files)
        row.blame(f"the key stands in {len(files)} files: {', '.join(files[:5])}")
    stores = list(attack.workshop.folder.rglob("replies.sqlite*"))
    if open_ones := [
        path
        for path in stores
        if path.stat().st_mode & 0o077 and "damaged/" not in str(path)
    ]:
        row.blame(f"{len(open_ones)} store files can be read by others")
    row.samples = len(stores)
    return row


# -- parts of scenarios


def _killed(row: Row, client: Client) -> float:
    """Kill a process; when that was."""
    client.kill()
    moment, ended = time.monotonic(), client.wait(5.0)
    row.kills += ended.code == -signal.SIGKILL
    row.tracebacks += ended.tracebacks
    return moment


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _questions(known: list[Known]) -> int:
    """How many different questions these samples ask of VIEScore."""
    return len(
        {question for one in known for question in one.questions("viescore").values()}
    )


def _verdicts(row: Row, path: Path) -> dict[str, Any]:
    try:
        return verdicts_of(path) if path.exists() else {}
    except ValueError as error:
        row.blame(f"{path.name} is not whole: {error}")
        return {}


def _check_file(
    row: Row, path: Path, known: list[Known], judge: str, attack: Attack
) -> None:
    check(row, known, _verdicts(row, path), judge, attack.server.asked.copy())


def _blame_failed(row: Row, verdicts: dict[str, Any]) -> None:
    if still := [
        uid for uid, verdict in verdicts.items() if verdict["status"] == "api_error"
    ]:
        row.blame(
            f"{len(still)} calls still failed on a server that was well: {', '.join(still[:5])}"
        )


def _until_answered(
    attack: Attack,
    row: Row,
    command: list[str | Path],
    written: Path,
    out: Path,
    bound: float,
) -> Ended:
    """Run a command until no call has failed; after three runs under faults the server is well."""
    for turn in range(5):
        ended = attack.run(command, written, bound)
        verdicts = _verdicts(row, out)
        if verdicts and all(
            verdict["status"] != "api_error" for verdict in verdicts.values()
        ):
            break
        row.tracebacks += ended.tracebacks
        if turn >= 2:
            attack.server.plan = Plan()
    return ended


def _blame_old(row: Row, attack: Attack, kills: list[float]) -> None:
    """What was delivered long before a kill was not in flight, and must not be asked again."""

    def in_flight(delivered: float, asked: float) -> bool:
        return any(
            delivered - 0.1 < moment < min(delivered + 2.0, asked) for moment in kills
        )

    old = sum(
        not in_flight(one.delivered, one.asked) for one in attack.server.asked_again()
    )
    if old:
        row.blame(
            f"{old} questions asked again whose reply had come more than 2 s before the kill"
        )


# -- what lmms-eval leaves


def _limit(attack: Attack) -> int:
    """The samples of each of eleven tasks: seven of VIEScore, four of VQAScore."""
    return max(2, -(-attack.size.lmms // 11))


def _lmms_files(out: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(out.rglob("*_samples_*.jsonl")):
        for line in path.read_text().splitlines():
            yield re.sub(r".*_samples_", "", path.stem), json.loads(line)


def _lmms_verdicts(out: Path) -> dict[str, Any]:
    """Verdicts by judge and identity; what is no verdict by its place."""
    found = {}
    for place, (task, answered) in enumerate(_lmms_files(out)):
        response = answered["filtered_resps"]
        while isinstance(response, list) and response:
            response = response[0]
        try:
            document = json.loads(response)
            uid = "/".join(
                [
                    task,
                    *(document["id"][name] for name in ("part", "image_model", "uid")),
                ]
            )
            found[uid] = document["verdict"]
        except (ValueError, KeyError, TypeError):
            found[f"{task} {place}"] = {
                "status": f"no verdict: {str(response)[:80]}",
                "scores": {},
                "trace": [],
            }
    return found


def _lmms_results(out: Path) -> Any:
    found = sorted(out.rglob("*_results.json"))
    return json.loads(found[-1].read_text())["results"] if found else None


def _check_lmms(
    row: Row,
    out: Path,
    limit: int,
    attack: Attack,
    judges: tuple[str, ...] = ("viescore", "vqascore"),
) -> None:
    from vieval_plugin.benchmarks import vieval_demo

    tasks = {"viescore": list(files.KINDS), "vqascore": list(files.PROMPTED)}
    verdicts, log = _lmms_verdicts(out), attack.server.asked.copy()
    for judge in judges:
        known = []
        for part in tasks[judge]:
            for sample in list(vieval_demo.load(Path(), part))[:limit]:
                pictures = {
                    role: files.picture_name(bytes(image.source))
                    for role, image in sample.images.items()
                }
                uid = f"vieval_demo_{judge}_{part}/{part}/{sample.id.image_model}/{sample.id.uid}"
                known.append(Known(uid, part, pictures))
        check(row, known, verdicts, judge, log)
    if _lmms_results(out) is None:
        row.blame("lmms-eval left no results")


ASIDE = ("bad", "vqascore")
"""Scenarios that mostly wait, and so go on beside the others."""


def scenarios(size: Size) -> dict[str, Callable[[Attack], Row]]:
    """All scenarios of a size, by name and in order; the first gives the others their measure."""
    found: dict[str, Callable[[Attack], Row]] = {
        "healthy": healthy,
        "viescore": many_faults("viescore", size.samples),
        "vqascore": many_faults("vqascore", size.some),
        "kills": kills,
        "two": two_processes,
        "bad": servers_for_good,
        "hostile": hostile_files,
        "disk": full_disk,
    }
    if size.short:
        return {
            name: found[name] for name in ("healthy", "viescore", "kills", "two")
        } | {"leaks": leaks}
    if size.lmms:
        found["lmms"] = lmms
        if size.lmms_kills:
            found["lmms-kills"] = lmms_kills
    return {**found, "leaks": leaks}
