"""How the masters of clusters are written, and what is said of those that no pipeline can run on."""

from __future__ import annotations

import socket

import pytest

from sluice.errors import BadInputError
from sluice.spark.cluster.processes import free_port
from sluice.spark.masters import addresses, check_answers, check_master


@pytest.mark.parametrize(
    ("master", "found"),
    [
        ("spark://h:7077", [("h", 7077)]),
        ("spark://h-1.site:7077,h-2.site:7078", [("h-1.site", 7077), ("h-2.site", 7078)]),
        ("spark://[::1]:7077", [("::1", 7077)]),
        ("yarn", []),
    ],
)
def test_addresses_of_a_master(master, found):
    assert addresses(master) == found


@pytest.mark.parametrize(
    "master",
    [
        *("", "h:7077", "local[2]", "k8s://h:1", "SPARK://h:1"),
        *("spark://", "spark://h", "spark://:7077", "spark://h:x", "spark://h:0", "spark://h:70770"),
        *("spark://h:1/", "spark://h:1,", "spark://h:1,h", "spark://a b:1"),
    ],
)
def test_what_is_no_master_is_named(master):
    with pytest.raises(BadInputError, match="spark://HOST:PORT, or on yarn, got") as refused:
        check_master(master)
    assert repr(master) in str(refused.value)


def test_one_of_several_masters_is_enough():
    dead = f"127.0.0.1:{free_port()}"
    with pytest.raises(BadInputError, match=f"{dead}: Connection refused"):
        check_answers(f"spark://{dead},{dead}")
    with socket.create_server(("127.0.0.1", 0)) as living:
        check_answers(f"spark://{dead},127.0.0.1:{living.getsockname()[1]}")
    check_answers("yarn")


def test_yarn_needs_a_folder_with_its_configuration(monkeypatch, tmp_path):
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    with pytest.raises(BadInputError, match=f"yarn-site.xml, got HADOOP_CONF_DIR='{tmp_path}'"):
        check_master("yarn")
    (tmp_path / "yarn-site.xml").write_text("<configuration/>")
    check_master("yarn")
