from __future__ import annotations

import json
import re

import pytest

from sluice.errors import BadInputError
from sluice.learning.instance_sizes import EXAMPLE, price_table


def test_the_example_has_six_sizes_and_none_is_cheaper_and_larger_than_another():
    ordered = sorted(EXAMPLE, key=lambda size: size.cpu_cores)
    assert len(ordered) == 6
    assert [size.price_per_hour for size in ordered] == sorted(size.price_per_hour for size in ordered)


def test_a_table_printed_as_json_reads_back(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([size.to_data() for size in EXAMPLE]))
    assert price_table(str(path)) == EXAMPLE


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "neither built in"),
        ("{", "no JSON"),
        ("{}", "list of at least one size, got {}"),
        ("[]", "list of at least one size, got []"),
        ('[{"name": "a", "cpu_cores": Infinity, "memory_mb": 1}]', "cpu_cores: Input should be a finite number"),
        ('[{"name": "a", "cpu_cores": NaN, "memory_mb": 1}]', "cpu_cores: Input should be a finite number"),
        ('[{"name": "a", "cpu_cores": 0, "memory_mb": 1}]', "cpu_cores"),
        ('[{"name": "a", "cpu_cores": 1, "memory_mb": 1}, {"name": "a", "cpu_cores": 2, "memory_mb": 1}]', "differ"),
    ],
)
def test_a_bad_table_is_refused_in_one_line(tmp_path, content, words):
    path = tmp_path / "bad.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadInputError, match=re.escape(words)):
        price_table(str(path))
