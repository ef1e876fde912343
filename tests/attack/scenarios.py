"""The scenarios: each attacks one promise and gives one line of the table."""

import json
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import split

from . import files
from .checks import Row, check, verdicts_of
from .clients import LIMITS, Workshop, all_ended, lmms_eval, options, score
from .fault_server import FaultServer, Plan
from .faults import BY_NAME, CHAT, FAULTS, LIKELIHOOD, NO_KEY, TRANSPORT
from .files import Known

CONCURRENT = 64
_VIESCORE, _VQASCORE = "vieval_demo_viescore", "vieval_demo_vqascore"
_LMMS_START = 90.0  # seconds that lmms-eval may take before its first question, on two shared cores
_ENDED = (0, 1)
_FOR_GOOD = split(
    "http_404 429_retry_0 429_retry_huge silence slow_loris redirect_307 "
    "closed_without_a_byte"
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
    """What all scenarios share; `pace` is the seconds of a request when nothing goes wrong."""

    size: Size
    workshop: Workshop
    server: FaultServer
    say: Callable[[str], None]
    pace: float = 0.05
    begin: float = 10.0  # seconds that a process takes before it asks anything
    answers: dict[str, bytes] = field(default_factory=dict)

    def apart(self, server):
        """The same for a scenario that goes on beside the others, with a server of its own."""
        return replace(self, server=server, say=lambda text: None)

    def folder(self, name: str) -> Path:
        path = self.workshop.folder / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def plan(self, name, **about):
        """Let the server begin anew, with draws of its own for this scenario."""
        self.server.forget()
        seed = random.Random(f"{name} {self.size.seed}").getrandbits(32)
        self.server.plan = Plan(seed=seed, **about)

    def bound(self, questions):
        """Seconds that a run may take: its start, work at a quarter of the pace, waits for faults,
        and the tail of one question whose tries begin anew, as no other is answered meanwhile.
        """
        work = questions * (4 * self.pace + 0.015)
        return 2 * self.begin + work + 4 * LIMITS.longest_question

    def options(self, folder, **more):
        store = folder / "replies.sqlite"
        return options(folder / "vieval.yaml", self.server.base_url, store, **more)

    def run(self, row, what, command, options, bound, codes, **about):
        """Run a command to its end, and note in the row how it ended."""
        ended = self.workshop.start(command, options, **about).wait(bound + 30.0)
        row.ended(ended, what, bound, codes)
        return ended

    def calm(self, row):
        """Go on without faults."""
        self.say(f"{row.scenario}: again, without faults")
        self.server.plan = Plan()

    def faults(self, *of):
        return [one for one in FAULTS if one.of in (None, *of)]

    def watch(self, client, answers, seconds):
        """Wait until the server has given so many answers, or the client has ended."""
        until = time.monotonic() + seconds
        while client.running() and time.monotonic() < until:
            if self.server.answers() >= answers:
                return
            time.sleep(0.02)


# -- vieval score


def healthy(attack):
    """Nothing goes wrong: what the verdicts are, and how fast this machine is."""
    row, folder = Row("nothing goes wrong"), attack.folder("healthy")
    samples, known = files.sound_samples(folder, attack.size.some, attack.size.seed)
    attack.plan(row.scenario)
    written, out = attack.options(folder), folder / "out.jsonl"
    client = attack.workshop.start(score(samples, out), written)
    while client.running() and not attack.server.asked and not attack.server.probes:
        time.sleep(0.02)
    attack.begin = time.monotonic() - client.began
    ended = client.wait(300.0)
    row.ended(ended, "healthy run", 300.0, (0,))
    working = ended.seconds - attack.begin
    attack.pace = max(0.002, working / max(1, len(attack.server.asked)))
    _check_file(row, out, known, "viescore", attack)
    attack.answers["some"] = _bytes(out)
    again = folder / "again.jsonl"
    attack.run(row, "the same again", score(samples, again), written, 60.0, (0,))
    row.counted(attack.server)
    if _bytes(again) != attack.answers["some"]:
        row.blame("the same run again gave other bytes")
    return row


def many_faults(judge, number):
    """All faults at once, 40% of requests; the first samples always meet one and the same."""

    def scenario(attack):
        row, folder = Row(f"faults, {judge}"), attack.folder(f"faults-{judge}")
        kinds = attack.faults(LIKELIHOOD if judge == "vqascore" else CHAT)
        cursed = {f"cursed by {kind.name}": kind for kind in kinds}
        shown = files.PROMPTED if judge == "vqascore" else tuple(files.KINDS)
        count = max(number, len(cursed))
        seeded = (folder, count, attack.size.seed, list(cursed), shown)
        samples, known = files.sound_samples(*seeded)
        attack.plan(row.scenario, kinds=kinds, cursed=cursed)
        written, bound = attack.options(folder), attack.bound(2 * len(known))
        out, again = folder / "out.jsonl", folder / "again.jsonl"
        attack.run(row, "run", score(samples, out, judge), written, bound, _ENDED)
        _check_file(row, out, known, judge, attack)
        attack.calm(row)
        later, bound = Row(""), attack.bound(300)
        attack.run(row, "rerun", score(samples, again, judge), written, bound, (0,))
        _check_file(later, again, known, judge, attack)
        row.merge(later, "rerun")
        _blame_failed(row, _verdicts(later, again))
        row.counted(attack.server)
        return row

    return scenario


def kills(attack):
    """kill -9 again and again; in the end the bytes are those of a run that nobody disturbed."""
    row, folder = Row("kill -9, vieval score"), attack.folder("kills")
    number = attack.size.kills - attack.size.lmms_kills
    draw = random.Random(f"kills {attack.size.seed}")
    # the same samples, folder and options as the run that nobody disturbed, and a store of its own
    home = attack.folder("healthy")
    samples, known = files.sound_samples(home, attack.size.some, attack.size.seed)
    attack.plan(row.scenario, kinds=TRANSPORT, pause=0.02)
    # beside the images, whose paths stand in it
    out = home / "killed.jsonl"
    written = attack.options(folder)
    bound, moments, every = attack.bound(2 * len(known)), [], _questions(known)
    for turn in range(3 * number):
        if row.kills == number:
            break
        attack.say(f"kill {row.kills + 1} of {number}")
        # at its start, soon after, in the middle, and the last one when all has been answered
        some = draw.choice((0, 1, draw.randrange(len(known) // 2)))
        more = some if row.kills < number - 1 else 10**9
        client = attack.workshop.start(score(samples, out), written)
        answered = attack.server.answers()
        if answered < every:
            attack.watch(client, min(answered + more, every), bound)
            time.sleep(draw.random() * (0.2 if turn % 2 else 0.02))
        else:  # nothing is left to ask: it reads its store and writes
            time.sleep(draw.random() * 1.5 * attack.begin)
        moments.append(_killed(row, client))
        if out.exists():
            _verdicts(row, out)  # whole or not at all
    if row.kills < number:
        row.blame(f"only {row.kills} of {number} kills came in time")
    _until_answered(attack, row, score(samples, out), written, out, bound)
    row.counted(attack.server, allowed_again=row.kills * CONCURRENT)
    _blame_old(row, attack, moments)
    _check_file(row, out, known, "viescore", attack)
    _blame_unlike(row, "verdicts", _bytes(out), attack.answers["some"])
    return row


def two_processes(attack):
    """Two runs of the same samples at once on one store: each question is asked by one of them."""
    row, folder = Row("two processes"), attack.folder("two")
    samples, known = files.sound_samples(folder, attack.size.some, attack.size.seed + 1)
    attack.plan(row.scenario, kinds=attack.faults(CHAT), pause=0.05)
    written, bound = attack.options(folder), attack.bound(4 * len(known))
    outs = [folder / "one.jsonl", folder / "other.jsonl"]

    def both(what, codes):
        clients = [attack.workshop.start(score(samples, out), written) for out in outs]
        for place, ended in enumerate(all_ended(clients, bound + 30.0)):
            row.ended(ended, f"{what}, process {place + 1}", bound, codes)
        return clients

    clients = both("both", _ENDED)
    one, other = (_verdicts(row, out) for out in outs)
    for client, verdicts in zip(clients, (one, other), strict=True):
        check(row, known, verdicts, "viescore", attack.server.asked.copy(), client.key)
    # what failed for one of them, or came empty, is no reply that the other could use
    unkept = [a for a in attack.server.asked if a.fault.final and not a.fault.kept]
    shaky = {asked.question for asked in unkept}
    # so does a question that met a fault at each of its few tries; `check` has accounted for it
    failed = {*_failed(one), *_failed(other)}
    questions = lambda sample: {q for q, _ in sample.questions("viescore").values()}
    sure = [a.uid for a in known if a.uid not in failed and not shaky & questions(a)]
    if differ := [uid for uid in sure if one.get(uid) != other.get(uid)]:
        first = ", ".join(differ[:5])
        row.blame(f"{len(differ)} verdicts differ between the two files: {first}")
    if at_once := attack.server.asked_at_once():
        asked = "questions asked while a good answer to them was under way"
        row.blame(f"{at_once} {asked}")
    attack.calm(row)
    attack.server.plan = Plan(pause=0.02)
    both("both again, without faults", (0,))
    row.counted(attack.server)
    if _bytes(outs[0]) != _bytes(outs[1]):
        row.blame("the two files differ in the end")
    return row


# -- lmms-eval


def lmms(attack):
    """All faults under lmms-eval, and then again on a server that is well."""
    row, folder = Row("faults, lmms-eval"), attack.folder("lmms")
    attack.plan(row.scenario, kinds=attack.faults(CHAT, LIKELIHOOD))
    written, limit, later = attack.options(folder), _limit(attack), Row("")
    bound = _LMMS_START + attack.bound(2 * attack.size.lmms)
    run = lambda out: lmms_eval(f"{_VIESCORE},{_VQASCORE}", limit, folder / out)
    attack.run(row, "run", run("out"), written, bound, _ENDED)
    _check_lmms(row, folder / "out", limit, attack)
    attack.calm(row)
    attack.run(row, "rerun", run("again"), written, bound, (0,))
    _check_lmms(later, folder / "again", limit, attack)
    row.merge(later, "rerun")
    _blame_failed(row, _lmms_verdicts(folder / "again"))
    row.counted(attack.server)
    return row


def lmms_kills(attack):
    """kill -9 of lmms-eval, then the same command to its end: the results of an undisturbed run."""
    row, folder = Row("kill -9, lmms-eval"), attack.folder("lmms-kills")
    draw = random.Random(f"lmms kills {attack.size.seed}")
    limit = max(2, _limit(attack) // 2)
    attack.plan(row.scenario, kinds=TRANSPORT, pause=0.02)
    written = attack.options(folder, concurrent=16)
    bound, moments = _LMMS_START + attack.bound(limit * 18), []
    run = lambda out: lmms_eval(_VIESCORE, limit, out)
    for count in range(attack.size.lmms_kills):
        attack.say(f"kill {count + 1} of {attack.size.lmms_kills}, lmms-eval")
        client = attack.workshop.start(run(folder / f"killed{count}"), written)
        more = draw.randrange(1, limit * 5)
        attack.watch(client, attack.server.answers() + more, bound)
        moments.append(_killed(row, client))
    for turn in range(4):
        attack.say(f"{row.scenario}: to its end")
        out = folder / f"out{turn}"
        attack.run(row, "after the kills", run(out), written, bound, _ENDED)
        if not _failed(_lmms_verdicts(out)):
            break
        attack.server.plan = Plan()
    row.counted(attack.server, allowed_again=row.kills * 16)
    _blame_old(row, attack, moments)
    _check_lmms(row, out, limit, attack, judges=("viescore",))
    attack.say(f"{row.scenario}: undisturbed, to compare")
    attack.server.plan = Plan()
    home = folder / "calm"
    calm = attack.options(home, concurrent=16)
    attack.run(row, "undisturbed", run(home / "out"), calm, bound, (0,))
    for what, read in (("verdicts", _lmms_verdicts), ("statistics", _lmms_results)):
        _blame_unlike(row, what, read(out), read(home / "out"))
    return row


# -- servers that never get well, files that are made to hurt, disks that are full


def servers_for_good(attack):
    """Servers that stay bad, each with a client of its own: every run ends in one line."""
    row, patience = Row("servers that stay bad"), 2.0
    samples, known = files.sound_samples(attack.folder("bad"), 30, attack.size.seed + 2)
    tried = [(NO_KEY, 0), *((BY_NAME[name], 0) for name in _FOR_GOOD)]
    tried += [(BY_NAME[name], 20) for name in ("http_401", "silence", "429_retry_0")]
    # a server that asks for rests is given them, doubled each time, up to half a minute, before
    # patience ends
    bound, rests = 2 * len(tried) * attack.begin + 4 * patience + 10.0, 100.0
    with ExitStack() as stack:
        servers = [stack.enter_context(FaultServer(Plan(pause=0.05))) for _ in tried]
        clients = []
        for (kind, after), server in zip(tried, servers, strict=True):
            folder = attack.folder(f"bad/{kind.name}-{after}")
            server.plan = Plan(pause=0.05, always=kind, spared=after)
            alone = replace(attack, server=server)
            written = alone.options(folder, concurrent=8, patience=patience)
            command = score(samples, folder / "out.jsonl")
            clients.append(attack.workshop.start(command, written))
        found = all_ended(clients, bound + rests + 30.0)
        for (kind, after), server, ended in zip(tried, servers, found, strict=True):
            when = f"after {after} answers" if after else "from the start"
            what = f"{kind.name} {when}"
            row.ended(ended, what, bound + rests * ("retry" in kind.name), (1,))
            row.samples += len(known)
            vain = len(server.asked) + server.probes - after
            if vain > 100:
                took = f"{vain} requests in vain in {ended.seconds:.0f} s"
                row.blame(f"{what}: {took}, at most 100 expected")
            row.counted(server)
    return row


def hostile_files(attack):
    """Bad lines and bad images are those samples' verdicts; options that bite end in one line."""
    row, folder = Row("hostile files"), attack.folder("hostile")
    samples, lines, known = files.hostile_samples(folder, attack.size.seed)
    attack.plan(row.scenario)
    written, out = attack.options(folder), folder / "out.jsonl"
    command = score(samples, out)
    ended = attack.run(row, "hostile lines", command, written, 60.0, _ENDED)
    verdicts = _verdicts(row, out)
    _check_file(row, out, known, "viescore", attack)
    for line in lines:
        verdict = verdicts.get(line.uid)
        row.samples += not line.what.startswith("a sound")
        if verdict is None:
            row.lost += 1
            row.blame(f"{line.what}: no verdict called {line.uid!r}")
        elif line.may and verdict["status"] not in line.may:
            may = " or ".join(line.may)
            row.blame(f"{line.what}: {verdict['status']}, expected {may}")
    if not verdicts:
        row.blame(f"no verdicts at all: {ended.last_line}")
    row.counted(attack.server)
    return row


_DISKS = (("a disk of 150 kB", 150, 0), ("a disk that is full", 40, 40))


def full_disk(attack):
    """The disk is full: one line, nothing half-written, nothing paid for that could not be kept."""
    row, folder = Row("full disk"), attack.folder("disk")
    samples, known = files.sound_samples(folder, attack.size.some, attack.size.seed + 3)
    written, out = attack.options(folder, concurrent=8), folder / "out.jsonl"
    attack.plan(row.scenario, pause=0.01)
    bound, command = attack.bound(2 * len(known)), score(samples, out)
    limited = {"wrapped": "ulimit -f 192"}
    attack.run(row, "files of at most 96 kB", command, written, bound, (1,), **limited)
    if out.exists():
        row.blame("a file of verdicts was written though it cannot have been whole")
    attack.run(row, "with room again", command, written, bound, (0,))
    row.counted(attack.server, allowed_again=8)
    _check_file(row, out, known, "viescore", attack)

    tried = subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False)
    if tried.returncode:
        attack.say("no small disk here: namespaces are not permitted")
        return row
    disk = folder / "small"
    for what, kilobytes, filled in _DISKS:
        attack.server.forget()
        disk.mkdir(exist_ok=True)
        mounted = f"mount -t tmpfs -o size={kilobytes}k tmpfs {disk}"
        if filled:
            mounted += f" && (dd if=/dev/zero of={disk}/full bs=1k count={filled} 2>/dev/null || true)"
        home = attack.folder("disk/elsewhere") if filled else disk
        store = home / "replies.sqlite"
        store.unlink(missing_ok=True)
        written = options(folder / "small.yaml", attack.server.base_url, store)
        small = {"wrapped": mounted, "own_mounts": True}
        command = score(samples, disk / "out.jsonl")
        attack.run(row, what, command, written, bound, (1,), **small)
        if filled and attack.server.asked:
            paid = f"{len(attack.server.asked)} questions were paid for first"
            row.blame(f"{what}: {paid}")
    return row


def leaks(attack):
    """After all that: no key in any file, and nobody but the user may read the stores."""
    row = Row("leaks")
    if files := attack.workshop.leaked():
        row.leaks += len(files)
        row.blame(f"the key stands in {len(files)} files: {', '.join(files[:5])}")
    stores = list(attack.workshop.folder.rglob("replies.sqlite*"))
    if shared := [path for path in stores if path.stat().st_mode & 0o077]:
        row.blame(f"{len(shared)} store files can be read by others")
    row.samples = len(stores)
    return row


# -- parts of scenarios


def _killed(row, client):
    """Kill a process; when that was."""
    client.kill()
    moment, ended = time.monotonic(), client.wait(5.0)
    row.kills += ended.code == -signal.SIGKILL
    row.tracebacks += ended.tracebacks
    return moment


def _bytes(path):
    return path.read_bytes() if path.exists() else b""


def _questions(known):
    """How many different questions these samples ask of VIEScore."""
    return len({asked for one in known for asked in one.questions("viescore").values()})


def _verdicts(row, path):
    try:
        return verdicts_of(path) if path.exists() else {}
    except ValueError as error:
        row.blame(f"{path.name} is not whole: {error}")
        return {}


def _check_file(row, path, known, judge, attack):
    check(row, known, _verdicts(row, path), judge, attack.server.asked.copy())


def _failed(verdicts):
    return [uid for uid, one in verdicts.items() if one["status"] == "api_error"]


def _blame_failed(row, verdicts):
    if still := _failed(verdicts):
        first = ", ".join(still[:5])
        row.blame(f"{len(still)} calls still failed on a server that was well: {first}")


def _blame_unlike(row, what, found, undisturbed):
    if found != undisturbed:
        row.blame(f"the {what} are not those of a run that nobody disturbed")


def _until_answered(attack, row, command, written, out, bound):
    """Run a command until no call has failed; after three runs under faults the server is well."""
    for turn in range(5):
        ended = attack.workshop.start(command, written).wait(bound + 30.0)
        verdicts = _verdicts(row, out)
        if verdicts and not _failed(verdicts):
            break
        row.tracebacks += ended.tracebacks
        if turn >= 2:
            attack.server.plan = Plan()
    row.ended(ended, "after the kills", bound, (0,))


def _blame_old(row, attack, kills):
    """What was delivered long before a kill was not in flight, and must not be asked again."""

    def in_flight(one):
        last = min(one.delivered + 2.0, one.asked)
        return any(one.delivered - 0.1 < moment < last for moment in kills)

    old = sum(not in_flight(one) for one in attack.server.asked_again())
    if old:
        late = "whose reply had come more than 2 s before the kill"
        row.blame(f"{old} questions asked again {late}")


# -- what lmms-eval leaves


def _limit(attack):
    """The samples of each of eleven tasks: seven of VIEScore, four of VQAScore."""
    return max(2, -(-attack.size.lmms // 11))


def _lmms_files(out):
    for path in sorted(out.rglob("*_samples_*.jsonl")):
        for line in path.read_text().splitlines():
            yield re.sub(r".*_samples_", "", path.stem), json.loads(line)


def _lmms_verdicts(out):
    """Verdicts by judge and identity; what is no verdict by its place."""
    found = {}
    for place, (task, answered) in enumerate(_lmms_files(out)):
        response = answered["filtered_resps"]
        while isinstance(response, list) and response:
            response = response[0]
        try:
            document = json.loads(response)
            names = (document["id"][name] for name in ("part", "image_model", "uid"))
            found["/".join([task, *names])] = document["verdict"]
        except (ValueError, KeyError, TypeError):
            status = f"no verdict: {str(response)[:80]}"
            found[f"{task} {place}"] = {"status": status, "scores": {}, "trace": []}
    return found


def _lmms_results(out):
    found = sorted(out.rglob("*_results.json"))
    return json.loads(found[-1].read_text())["results"] if found else None


def _check_lmms(row, out, limit, attack, judges=("viescore", "vqascore")):
    from vieval_plugin.benchmarks import vieval_demo

    tasks = {"viescore": list(files.KINDS), "vqascore": list(files.PROMPTED)}
    verdicts, log = _lmms_verdicts(out), attack.server.asked.copy()
    for judge in judges:
        known = []
        for part in tasks[judge]:
            for sample in list(vieval_demo.load(Path(), part))[:limit]:
                shown = {r: bytes(image.source) for r, image in sample.images.items()}
                pictures = {role: files.picture_name(it) for role, it in shown.items()}
                place = f"{part}/{sample.id.image_model}/{sample.id.uid}"
                uid = f"vieval_demo_{judge}_{part}/{place}"
                known.append(Known(uid, part, pictures))
        check(row, known, verdicts, judge, log)
    if _lmms_results(out) is None:
        row.blame("lmms-eval left no results")


ASIDE = ("bad", "vqascore")
"""Scenarios that mostly wait, and so go on beside the others."""


def scenarios(size):
    """All scenarios of a size, by name and in order; the first gives the others their measure."""
    found = {
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
        chosen = ("healthy", "viescore", "kills", "two")
        return {**{name: found[name] for name in chosen}, "leaks": leaks}
    if size.lmms:
        found["lmms"] = lmms
        if size.lmms_kills:
            found["lmms-kills"] = lmms_kills
    return {**found, "leaks": leaks}
