"""Private calls of Spark are in one folder, and one that is missing is refused by name."""

import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import SimpleNamespace

import pytest
from py4j.protocol import Py4JError, Py4JNetworkError

import sluice
from sluice.spark import internals
from sluice.spark.internals import ApplicationEndedError, MissingCallError, checkpoints, executor_calls, status
from sluice.spark.internals.queries import ApplicationQueries, RunningQuery

PRIVATE = re.compile(
    r"\._(jsc|jvm|jsparkSession|jsq|jsqm|jdf|jconf|gateway|streamingCheckpointManager)\b"
    r"|\b(statusStore|statusTracker|schedulerBackend|sessionState|queryExecution|requestTotalExecutors|killExecutors"
    r"|decommissionExecutor|ObjectMapper|PythonStreamingQueryListenerWrapper|ensure_callback_server_started)\b"
    r"|\b_jsparkSession\b"
)


FOLDER = Path(internals.__file__).parent


def test_private_calls_of_spark_are_in_one_folder():
    root = Path(sluice.__file__).parent
    found = [
        f"{path.relative_to(root)}:{number}: {line.strip()}"
        for path in sorted(root.rglob("*.py"))
        # what tests check sluice with asks Spark independently of it
        if path.parent != FOLDER and "testing" not in path.parts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if PRIVATE.search(line)
    ]
    assert found == []


def test_every_function_names_the_versions_it_was_seen_on():
    without = [
        name
        for module in (
            internals,
            *(import_module(f"{internals.__name__}.{one.name}") for one in iter_modules([FOLDER])),
        )
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__
        and not name.startswith("_")
        and not (isinstance(value, type) and issubclass(value, Exception))
        and name not in {"is_unanswered", "root_cause", "Json", "needs", "context_of", "jvm_of"}
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
        executor_calls.request_executors(session(scheduler=object(), _jvm=Refusing(error)), 3)
    with pytest.raises(MissingCallError, match=r"Spark 9\.1\.0 has no status store"):
        status.StatusStore(session(scheduler=Refusing(error)))
    with pytest.raises(MissingCallError, match=r"Spark 9\.1\.0 has no checkpoint manager"):
        checkpoints.repartition_state(session(), "/tmp/checkpoint", 3)


@pytest.mark.parametrize("error", [Py4JNetworkError("Answer from Java side is empty"), Py4JError("target is gone")])
def test_what_spark_itself_raises_passes_through(error):
    with pytest.raises(type(error), match=str(error)):
        executor_calls.decommission_executors(session(scheduler=object(), _jvm=Refusing(error)), ["1"])


def test_a_stopped_session_is_no_missing_call():
    with pytest.raises(ApplicationEndedError, match="the Spark application has ended"):
        status.StatusStore(session())
    assert internals.has_ended(session())


def test_a_trigger_that_spark_does_not_tell_is_unknown():
    query = RunningQuery(Execution("q", "run", None))
    query._execution = Refusing(Py4JError("does not exist"))
    assert query.trigger_interval_s() is None


class Execution:
    """A query as Spark executes it."""

    def __init__(self, query_id, run_id, streams):
        self._ids = query_id, run_id
        self._streams = streams

    def id(self):
        return SimpleNamespace(toString=lambda: self._ids[0])

    def runId(self):  # noqa: N802
        return SimpleNamespace(toString=lambda: self._ids[1])

    def name(self):
        return None

    def sparkSession(self):  # noqa: N802
        return SimpleNamespace(streams=lambda: self._streams)


class Streams(list):
    """A session's manager of queries, as a list of its listeners; no other is equal to it."""

    addListener, removeListener = list.append, list.remove  # noqa: N815
    __hash__ = object.__hash__

    def __eq__(self, other):
        return self is other


class ActiveQueries(dict):
    """The state that sessions share; counts how often its content is asked for."""

    asked = 0

    def toString(self):  # noqa: N802
        return str(list(self))

    def elements(self):
        self.asked += 1
        return self.values()


@pytest.fixture
def application(monkeypatch):
    monkeypatch.setattr("pyspark.java_gateway.ensure_callback_server_started", lambda _: None)
    wrapper = SimpleNamespace(PythonStreamingQueryListenerWrapper=lambda listener: listener)
    apache = SimpleNamespace(spark=SimpleNamespace(sql=SimpleNamespace(streaming=wrapper)))
    java = SimpleNamespace(util=SimpleNamespace(Collections=SimpleNamespace(list=list)))
    active = ActiveQueries()
    state = SimpleNamespace(activeStreamingQueries=lambda: active)
    return SimpleNamespace(
        active=active,
        version="4.3.0",
        streams=SimpleNamespace(_jsqm=Streams()),
        sparkContext=SimpleNamespace(_gateway=None),
        _jvm=SimpleNamespace(org=SimpleNamespace(apache=apache), java=java),
        _jsparkSession=SimpleNamespace(sharedState=lambda: state),
    )


def test_queries_of_all_sessions_are_known_and_heard_once_each(application):
    own, other = application.streams._jsqm, Streams()
    application.active |= {"a": Execution("a", "1", own), "b": Execution("b", "2", other)}
    application.active["c"] = Execution("c", "3", other)
    queries = ApplicationQueries(application)
    queries.listen(print)
    assert [query.run_id for query in queries.running()] == ["1", "2", "3"]
    assert (len(own), len(other)) == (1, 1)
    queries.close()
    assert (len(own), len(other)) == (0, 0)


def test_nothing_is_kept_of_sessions_without_queries_and_nothing_asked_while_nothing_changes(application):
    queries = ApplicationQueries(application)
    queries.listen(print)
    for number in range(100):
        short_lived = Streams()
        application.active.clear()
        application.active[f"query {number}"] = Execution(f"query {number}", f"run {number}", short_lived)
        queries.refresh()
        assert len(short_lived) == 1
    assert queries.run_ids == {"run 99"}
    assert len(queries._others) == 1
    asked = application.active.asked
    queries.refresh()
    assert application.active.asked == asked


def test_without_a_shared_state_the_queries_of_the_session_are_known(application):
    application._jsparkSession = Refusing(Py4JError("Method sharedState does not exist"))
    execution = Execution("a", "1", None)
    application.streams._jsqm = SimpleNamespace(active=lambda: [SimpleNamespace(streamingQuery=lambda: execution)])
    assert [query.run_id for query in ApplicationQueries(application).running()] == ["1"]


@pytest.mark.parametrize(
    ("error", "cause"), [(ValueError("two\n  lines"), "two lines"), (OSError("x" * 400), "x" * 300)]
)
def test_an_error_is_told_in_one_line(error, cause):
    assert internals.root_cause(error) == cause
