"""Private calls of Spark are in one module, and one that is missing is refused by name."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

import sluice
from sluice.spark import internals
from sluice.spark.internals import ApplicationEndedError, MissingCallError

PRIVATE = re.compile(
    r"\._(jsc|jvm|jsparkSession|jsq|jsqm|jdf|jconf|gateway|streamingCheckpointManager)\b"
    r"|\b(statusStore|statusTracker|schedulerBackend|sessionState|queryExecution|requestTotalExecutors|killExecutors"
    r"|decommissionExecutor|ObjectMapper|PythonStreamingQueryListenerWrapper|ensure_callback_server_started)\b"
    r"|\b_jsparkSession\b"
)


def test_private_calls_of_spark_are_in_one_module():
    root = Path(sluice.__file__).parent
    found = [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path in sorted(root.rglob("*.py"))
        if path != Path(internals.__file__)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if PRIVATE.search(line)
    ]
    assert found == []


def test_every_function_names_the_versions_it_was_seen_on():
    without = [
        name
        for name, value in vars(internals).items()
        if getattr(value, "__module__", None) == internals.__name__
        and not name.startswith("_")
        and not (isinstance(value, type) and issubclass(value, Exception))
        and name not in {"is_unanswered", "root_cause", "Json"}
        and not re.search(r"Seen on Spark [\d., and]*4\.3\.0\.", " ".join((value.__doc__ or "").split()))
    ]
    assert without == []


def session(*, scheduler=None, **parts):
    context = None if scheduler is None else SimpleNamespace(sc=lambda: scheduler)
    return SimpleNamespace(version="9.1.0", sparkContext=SimpleNamespace(_jsc=context), **parts)


class Refusing:
    """Any call raises what it was made with."""

    def __init__(self, error):
        self._error = error

    def __getattr__(self, name):
        raise self._error


NO_METHOD = Py4JError("An error occurred while calling o30.requestTotalExecutors. Trace: Method does not exist")


@pytest.mark.parametrize("error", [NO_METHOD, AttributeError("no such attribute"), TypeError("'JavaPackage' object")])
def test_a_call_that_is_not_there_is_refused_in_one_line(error):
    with pytest.raises(MissingCallError, match=r"Spark 9\.1\.0 has no requestTotalExecutors, which sluice needs"):
        internals.request_executors(session(scheduler=object(), _jvm=Refusing(error)), 3)
    with pytest.raises(MissingCallError, match=r"Spark 9\.1\.0 has no status store"):
        internals.StatusStore(session(scheduler=Refusing(error)))
    with pytest.raises(MissingCallError, match=r"Spark 9\.1\.0 has no checkpoint manager"):
        internals.repartition_state(session(), "/tmp/checkpoint", 3)


@pytest.mark.parametrize("error", [Py4JNetworkError("Answer from Java side is empty"), Py4JError("target is gone")])
def test_what_spark_itself_raises_passes_through(error):
    with pytest.raises(type(error), match=str(error)):
        internals.decommission_executors(session(scheduler=object(), _jvm=Refusing(error)), ["1"])


def test_a_stopped_session_is_no_missing_call():
    with pytest.raises(ApplicationEndedError, match="the Spark application has ended"):
        internals.StatusStore(session())
    assert internals.has_ended(session())


def test_a_trigger_that_spark_does_not_tell_is_unknown():
    assert internals.trigger_interval_s(SimpleNamespace(_jsq=Refusing(Py4JError("does not exist")))) is None


@pytest.mark.parametrize(
    ("error", "cause"), [(ValueError("two\n  lines"), "two lines"), (OSError("x" * 400), "x" * 300)]
)
def test_an_error_is_told_in_one_line(error, cause):
    assert internals.root_cause(error) == cause
