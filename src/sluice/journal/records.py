"""The records of a journal: what runs, every cycle, what came of its action, what people did, and the end. Typed.

One record is one line of JSON. A cycle is written before its action, so that a crash in the middle of one leaves the
intent on record; outcomes follow as they become known, each naming its cycle. `FORMAT` counts changes that an older
reader could not follow; `sluice.journal.legacy` reads what came before.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from sluice.errors import BadInputError
from sluice.model import Graph, Observation, Recommendation, Target
from sluice.model.base import Count, Frozen, Name, NonNegative, Parallelism, Positive

FORMAT: Literal[2] = 2

Action = Literal["none", "apply", "cooldown", "dry_run"]
"""none: the target stays. apply: the engine gets a new one. The others: it would, but for a cooldown or a dry run."""

Control = Literal["pause", "resume", "dry_run", "pin", "unpin", "policy"]

Status = Literal["done", "waiting", "partly", "failed", "unfulfilled"]


class Choice(Frozen):
    """Something picked by name, with the settings it was given; written `ds2:over_provisioning=1.4,warm_up=2`."""

    name: Name
    settings: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def parse_text(cls, text: str) -> Choice:
        """From `ds2` or `ds2:over_provisioning=1.4,warm_up=2`."""
        name, _, rest = text.partition(":")
        settings: dict[str, Any] = {}
        for pair in filter(None, rest.split(",")):
            key, equals, value = pair.partition("=")
            if not equals or not key.strip():
                raise BadInputError(f"expected NAME or NAME:key=value,..., got {text!r}")
            settings[key.strip()] = value.strip()
        return cls(name=name.strip(), settings=settings)

    @property
    def label(self) -> str:
        settings = ",".join(f"{key}={value}" for key, value in self.settings.items())
        return f"{self.name}:{settings}" if settings else self.name


class RunHeader(Frozen):
    """What runs from here on. A journal has one for every start: a resumed run adds its own."""

    kind: Literal["run"] = "run"
    format: Literal[2] = FORMAT
    version: str = Field(description="of sluice")
    engine: Name = Field(description="sim, spark or attach")
    pipeline: Choice
    policy: Choice
    workload: Choice | None = None
    guards: dict[str, Any] = Field(default_factory=dict)
    graph: Graph | None = Field(None, description="null where operators come and go")
    duration_s: Positive | None = Field(None, description="null: until it is stopped")
    interval_s: Positive
    speedup: Positive = 1.0
    seed: int = 0
    slo_s: Positive | None = Field(None, description="latency objective")
    dry_run: bool = False
    settings: dict[str, Any] = Field(default_factory=dict, description="what only this engine has")


class Shadow(Frozen):
    """What another policy would have done in a cycle, after the same guards, the cooldown left out."""

    parallelism: dict[Name, Count]
    reason: str
    problem: str | None = None


class Cycle(Frozen):
    """One turn of the loop: what was observed, recommended, and decided after guards and placement."""

    kind: Literal["cycle"] = "cycle"
    cycle: Count
    time_s: NonNegative
    observation: Observation
    recommendation: Recommendation
    problem: str | None = Field(None, description="why the policy was not followed, or not asked properly")
    notes: tuple[str, ...] = Field((), description="what guards and placement changed, one sentence each")
    events: tuple[str, ...] = Field((), description="what the engine repaired since the last cycle, one sentence each")
    action: Action
    target: Target = Field(description="in force from now on")
    proposed: Target | None = Field(
        None, description="what guards made of the recommendation, where it is not in force"
    )
    requested: dict[Name, Count] = Field(
        default_factory=dict, description="what the engine had requested before this cycle"
    )
    shadows: dict[Name, Shadow] = Field(
        default_factory=dict,
        description="policies that were asked beside the one that acts; left out where there are none",
        exclude_if=lambda shadows: not shadows,
    )


class OperatorOutcome(Frozen):
    """One operator's share of an action: instances before it, requested, and there when this was written."""

    before: Count
    requested: Count
    observed: Count
    error: str | None = Field(None, description="set: it runs on as before")


class Outcome(Frozen):
    """What came of a cycle's action, as far as is known at `time_s`.

    waiting: requested, but not there yet. unfulfilled: not there in time, so the target was reconsidered.
    """

    kind: Literal["outcome"] = "outcome"
    cycle: Count
    time_s: NonNegative
    status: Status
    operators: dict[Name, OperatorOutcome] = Field(default_factory=dict)
    downtime_s: NonNegative = Field(0.0, description="longest time an operator stood still for it")
    detail: str | None = None


class Intervention(Frozen):
    """A person's use of a control, on record before it takes effect. With `error` set it had none."""

    kind: Literal["intervention"] = "intervention"
    cycle: Count = Field(description="the first cycle it holds for")
    time_s: NonNegative
    control: Control
    operator: Name | None = Field(None, description="pin and unpin: whose parallelism")
    parallelism: Parallelism | None = Field(None, description="pin: how many instances")
    policy: Choice | None = Field(None, description="policy: who decides from now on")
    on: bool | None = Field(None, description="dry_run: whether it begins or ends")
    error: str | None = Field(None, description="why nothing came of it")

    def sentence(self) -> str:
        match self.control:
            case "pin":
                text = f"pin {self.operator} to {self.parallelism}"
            case "unpin":
                text = f"unpin {self.operator}"
            case "policy":
                text = f"change the policy to {self.policy.label if self.policy else 'unknown'}"
            case "dry_run":
                text = "begin a dry run" if self.on else "end the dry run"
            case _:
                text = self.control
        return f"{text}: failed, {self.error}" if self.error else text


class RecordCount(Frozen):
    """Records counted end to end when a run is over; null: this engine cannot know."""

    arrived: Count
    processed: Count
    waiting: Count
    lost: Count | None
    duplicated: Count | None
    downtime_s: NonNegative = 0.0


class End(Frozen):
    """The run is over; `error` says why, unless it was its time."""

    kind: Literal["end"] = "end"
    time_s: NonNegative
    records: RecordCount
    error: str | None = None


AnyRecord = RunHeader | Cycle | Outcome | Intervention | End
RECORD: TypeAdapter[AnyRecord] = TypeAdapter(Annotated[AnyRecord, Field(discriminator="kind")])


def journal_schema() -> dict[str, Any]:
    """The published JSON schema of a journal's lines."""
    return {**RECORD.json_schema(), "title": "A record of a sluice journal", "format": FORMAT}
