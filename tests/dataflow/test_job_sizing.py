"""What a configuration carries, and which one a load needs."""

from __future__ import annotations

from dataclasses import replace

from sluice.dataflow.job_model import JobModel
from sluice.dataflow.job_sizing import JobSizing
from sluice.protocol import EMPTY_MEMORY
from tests.policies.jobs import job

CAUTION = 1.0


def model(**changes) -> JobModel:
    """One operator whose four instances take 400 rec/s."""
    metrics = {"parallelism": 4, "input_rate": 200.0, "true_input_rate": 400.0, "busy": 0.5, "arrival_rate": 200.0}
    learned = JobModel.learned(job(source={**metrics, "lag": 0.0, "lag_rate": 0.0}), EMPTY_MEMORY, saturates=False)
    return replace(learned, **changes)


def bent(slope: float, variance: float) -> JobModel:
    seen = model()
    return model(curves={"source": seen.curves["source"]._replace(slope=slope, variance=variance)})


def test_doubt_makes_it_grow_further_and_only_evidence_makes_it_stop():
    sure, doubtful = JobSizing(bent(0.5, 0.0001), CAUTION), JobSizing(bent(0.3, 0.009), CAUTION)
    assert 4 < sure.sized(600.0)["source"] < doubtful.sized(600.0)["source"]
    assert JobSizing(bent(0.1, 0.001), CAUTION).sized(600.0)["source"] == 4


def test_what_was_carried_bounds_what_larger_and_smaller_configurations_carry():
    plain = JobSizing(model(), CAUTION)
    assert plain.carried({"source": 2}) < 300 < plain.carried({"source": 6}) < 700
    seen = JobSizing(model(limits=[[700.0, {"source": 6}], [150.0, {"source": 3}]]), CAUTION)
    assert seen.carried({"source": 6}) == seen.carried({"source": 7}) == 700.0
    assert seen.carried({"source": 2}) == 150.0


def test_no_more_is_within_reach_than_the_slots_there_are_carry():
    open_ended, limited, roomy = (JobSizing(model(), CAUTION) for _ in range(3))
    limited.limit(8, 1500.0)
    roomy.limit(50, 1500.0)
    assert open_ended.sized(1500.0)["source"] > 8
    assert limited.sized(1500.0) == {"source": 8}
    assert limited.carried({"source": 8}) >= limited.most > limited.carried({"source": 7})
    assert roomy.most == open_ended.most
