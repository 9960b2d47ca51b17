"""Records of a small run, for tests of those who read journals."""

from sluice.journal.records import Choice, Cycle, End, OperatorOutcome, Outcome, RecordCount, RunHeader
from sluice.journal.results import RunLog, reports_of
from sluice.model import Observation, OperatorMetrics, Recommendation, Target


def header(**parts):
    given = {"engine": "sim", "pipeline": Choice(name="q1"), "policy": Choice(name="ds2"), "interval_s": 15.0}
    return RunHeader(version="0.2.0", **{**given, **parts})


def cycle(number, latency_s=1.0, rate=100.0, *, names=("source",), parallelism=2, target=None, proposed=None, **parts):
    time_s = 15.0 * (number + 1)
    operators = {
        name: OperatorMetrics(parallelism=parallelism, arrival_rate=rate or 0.0, input_rate=rate, batch_s=1.0)
        for name in names
    }
    return Cycle(
        cycle=number,
        time_s=time_s,
        observation=Observation(
            time_s=time_s,
            interval_s=15.0,
            operators=operators,
            latency_samples_s=() if latency_s is None else (latency_s,),
        ),
        recommendation=Recommendation(reason="source 1 -> 2 for 150 rec/s at 100 each"),
        target=Target(parallelism=dict.fromkeys(names, target or parallelism)),
        proposed=None if proposed is None else Target(parallelism=dict.fromkeys(names, proposed)),
        **{"action": "none", **parts},
    )


def outcome(number, before, requested, *, status="done", observed=None, error=None, names=("source",), **parts):
    part = OperatorOutcome(
        before=before, requested=requested, observed=requested if observed is None else observed, error=error
    )
    return Outcome(
        cycle=number, time_s=15.0 * (number + 1), status=status, operators=dict.fromkeys(names, part), **parts
    )


def end():
    return End(time_s=60.0, records=RecordCount(arrived=9, processed=9, waiting=0, lost=0, duplicated=0))


def run(*records, **head):
    return RunLog(header(**head), reports_of(records))
