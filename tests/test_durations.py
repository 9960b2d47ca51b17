"""Times as people write them."""

import pytest

from sluice.cli import main
from sluice.durations import seconds
from sluice.errors import BadInputError


@pytest.mark.parametrize(
    ("written", "found"),
    [
        (30, 30.0),
        (0.5, 0.5),
        ("30", 30.0),
        ("1.5", 1.5),
        ("30s", 30.0),
        (" 5 m ", 300.0),
        ("5min", 300.0),
        ("2h", 7200.0),
        ("1d", 86_400.0),
        ("250ms", 0.25),
        ("-1s", -1.0),
    ],
)
def test_a_time_is_read(written, found):
    assert seconds(written, "interval") == found


@pytest.mark.parametrize(
    "written",
    ["soon", "", "5 parsecs", "m", "1h30", None, True, float("inf"), [5], "nan", "1e999s", "1e308h", 10**400],
)
def test_what_is_no_time_is_refused_by_name_and_value(written):
    with pytest.raises(BadInputError) as refused:
        seconds(written, "interval")
    assert str(refused.value) == (f"interval must be seconds or a time such as '30s', '5m' or '2h', got {written!r}")


def test_options_take_times_too(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["run", "q1", "--interval", "soon"])
    assert ended.value.code == 2
    assert "'--interval': the value must be seconds or a time such as '30s'" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main(["run", "q1", "--duration", "2m", "--interval", "30s", "--slo", "1m", "--json"])
    assert ended.value.code == 0
