"""Runs of a judge as a report reads them, without files."""

from vieval_plugin.judges.protocol import SampleId, Status, Verdict
from vieval_plugin.records import Provenance, Record, Run


def run_of(label, rows, aspects=("O",), *, benchmark="b", judge="mine", **described):
    """A judge's run of rows (part, image model, uid, scores, ratings); without scores it refused.

    The samples of a uid are drawn together, unless a row says in a sixth place what else its record
    has.
    """
    given = described.pop("provenance", None) or {}
    source, records = Provenance(judge, (), aspects, label, **given), {}
    for part, model, uid, scores, ratings, *further in rows:
        verdict = Verdict(scores, Status.OK if scores else Status.REFUSAL)
        more = further[0] if further else {"group": uid}
        identity = SampleId(benchmark, part, model, uid)
        record = Record(identity, verdict, source, ratings, kind=part, **more)
        records.setdefault(part, []).append((record,))
    return Run(label, benchmark, judge, aspects, records, **described)
