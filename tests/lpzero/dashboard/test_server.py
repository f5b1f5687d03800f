"""Who may ask, what is answered, and what run directories of strangers can do: nothing."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra lpzero[dashboard] is not installed")
pytest.importorskip("uvicorn", reason="the extra lpzero[dashboard] is not installed")

from lpzero.cli.main import run
from lpzero.dashboard.server import POLICY, Connection
from lpzero.runs import layout
from tests.lpzero.dashboard.served import Served, serving
from tests.lpzero.sealed_runs import content, rewrite
from tests.lpzero.small_campaign import discovery

pytestmark = pytest.mark.slow

SECRET = "nobody may read this"


@pytest.fixture
def runs(campaign: Path, tmp_path: Path) -> Path:
    """A folder with one run, `good`, and a secret outside it."""
    ignored = shutil.ignore_patterns("report")
    shutil.copytree(campaign, tmp_path / "runs" / "good", ignore=ignored)
    (tmp_path / "secret.txt").write_text(SECRET)
    return tmp_path / "runs"


@pytest.fixture
def served(runs: Path) -> Iterator[Served]:
    with serving(runs) as found:
        yield found


def id_of(served: Served, name: str = "good") -> str:
    return str(served.runs()[name]["id"])


def test_the_list_says_what_each_run_is(served: Served) -> None:
    line = served.runs()["good"]
    assert (line["kind"], line["table"], line["state"]) == ("campaign", "made-up", "finished")
    assert line["progress"] == "generation 6 of 6"
    assert line["best"].startswith("test rho ")
    assert line["size"] > 10_000
    assert b"made-up" in served.ask().body


def test_every_page_is_answered_with_the_policy_and_no_site_may_frame_it(served: Served) -> None:
    id = id_of(served)
    pages = ("", f"run/{id}", f"compare?run={id}", "api/runs", f"api/run/{id}", "static/live.js")
    for page in pages:
        answer = served.ask(page)
        assert answer.status == 200, page
        assert answer.headers["content-security-policy"] == POLICY
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
    assert "'unsafe-inline'" not in POLICY.split("style-src")[0]


def test_a_page_without_content_is_titled_by_table_and_kind_or_else_by_name(
    served: Served, runs: Path
) -> None:
    id = id_of(served)
    assert served.ask(f"api/run/{id}").json()["title"] == "made-up: campaign"
    rewrite(runs / "good", layout.RESULT, {"best": "not a winner"})
    found = served.ask(f"api/run/{id}").json()
    assert found["title"] == "made-up: campaign"
    assert "are not those of a run of this version" in found["remarks"][0]
    (runs / "good" / layout.CONFIG).write_text("{")
    assert served.ask(f"api/run/{id}").json()["title"] == "good"


def test_nothing_is_sent_again_until_something_changes(served: Served, runs: Path) -> None:
    id = id_of(served)
    version = served.ask(f"api/run/{id}").json()["version"]
    assert served.ask(f"api/run/{id}?seen={version}").status == 204
    result = content(runs / "good", layout.RESULT)
    result["verdict"] = "another verdict"
    rewrite(runs / "good", layout.RESULT, result)
    newer = served.ask(f"api/run/{id}?seen={version}")
    assert newer.status == 200
    assert "another verdict" in str(newer.json()["sections"])


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "attacker.example"},
        {"Host": "attacker.example:8787"},
        {"Host": "127.0.0.1.attacker.example"},
        {"Host": ""},
        {"Origin": "http://attacker.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1"},
    ],
)
def test_other_hosts_and_origins_are_refused(served: Served, headers: dict[str, str]) -> None:
    for path in ("", "api/runs", "static/live.js"):
        answer = served.ask(path, **headers)
        assert answer.status == 403
        assert b"campaign" not in answer.body


def test_the_dashboard_s_own_names_and_origin_are_accepted(served: Served) -> None:
    for host in (f"localhost:{served.port}", f"127.0.0.1:{served.port}", f"[::1]:{served.port}"):
        assert served.ask(Host=host, Origin=f"http://{host}").status == 200


def test_without_the_token_nothing_is_answered(served: Served) -> None:
    token = served.base.strip("/")
    wrong = ("", token[:-1], f"x{token}", token.lower(), f"?token={token}", f"./{token}")
    for path in ("/api/runs", "/static/live.js", "//api/runs", *(f"/{word}/" for word in wrong)):
        assert served.ask_path(path).status == 403, path


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(served: Served, method: str) -> None:
    assert served.ask("api/runs", method).status == 405


@pytest.mark.parametrize(
    "path",
    [
        "static/../../secret.txt",
        "static/%2e%2e%2fsecret.txt",
        "static/..%2f..%2fsecret.txt",
        "run/../../secret.txt",
        "run/%2e%2e",
        "api/run/good",
        "api/run/..%2f..%2fsecret.txt",
        "compare?run=../../secret.txt",
        "compare",
        "good/config.json",
    ],
)
def test_paths_lead_nowhere(served: Served, path: str) -> None:
    answer = served.ask(path)
    assert answer.status == 404
    assert SECRET.encode() not in answer.body


def test_links_out_of_the_folder_are_not_followed(campaign: Path, runs: Path) -> None:
    outside = runs.parent / "elsewhere"
    shutil.copytree(campaign, outside)
    (runs / "link").symlink_to(outside)
    names = (layout.CONFIG, layout.JOURNAL, layout.RESULT, layout.HALL, layout.SCORES)
    for name in names:
        shutil.copytree(campaign, runs / f"linked-{name}")
        (runs / f"linked-{name}" / name).unlink()
        (runs / f"linked-{name}" / name).symlink_to(outside / name)
    with serving(runs) as served:
        lines = served.runs()
        assert set(lines) == {"good", *(f"linked-{name}" for name in names)}
        for name in names:
            line = lines[f"linked-{name}"]
            assert line["state"] == "unreadable"
            assert line["remark"] == f"{name} is a symbolic link, which is not followed"
            page = served.ask(f"run/{line['id']}")
            assert page.status == 200
            assert b"test rho" not in page.body
            assert line["remark"].encode() in page.body


def test_files_that_are_huge_or_no_files_are_refused_at_once(campaign: Path, runs: Path) -> None:
    for name in (layout.CONFIG, layout.RESULT, layout.HALL, layout.SCORES, layout.JOURNAL):
        shutil.copytree(campaign, runs / f"huge-{name}")
        os.truncate(runs / f"huge-{name}" / name, 1 << 30)  # a sparse gigabyte
    shutil.copytree(campaign, runs / "pipe")
    (runs / "pipe" / layout.RESULT).unlink()
    os.mkfifo(runs / "pipe" / layout.RESULT)
    with serving(runs) as served:
        lines = served.runs()
        for name, line in lines.items():
            page = served.ask(f"run/{line['id']}")
            assert page.status == 200, name
    assert lines["huge-config.json"]["state"] == "unreadable"
    assert "1,073,741,824 bytes" in lines["huge-result.json"]["remark"]
    assert lines["pipe"]["remark"] == "result.json is not a regular file"
    assert lines["good"]["state"] == "finished"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (layout.CONFIG, {"kind": "<script>alert(1)</script>"}),
        (layout.CONFIG, {"request": {"tables": 7, "settings": []}}),
        (layout.CONFIG, {"request": {}}),
        (layout.RESULT, {"best": 7, "tables": None, "tried": []}),
        (layout.RESULT, {"best": {"rho": {"test": "\x1b[31mred"}}}),
        (layout.RESULT, {"best": {"rho": {"test": 10**400}}}),
        (layout.RESULT, {"counters": "<b>", "rejected": 3}),
    ],
)
def test_content_of_other_shapes_is_a_remark_not_a_failure(
    served: Served, runs: Path, name: str, value: dict[str, object]
) -> None:
    rewrite(runs / "good", name, content(runs / "good", name) | value)
    for path in ("api/runs", f"run/{id_of(served)}", f"compare?run={id_of(served)}"):
        answer = served.ask(path)
        assert answer.status == 200
        assert b"<script>alert" not in answer.body.replace(b'"kind":"<script>alert', b"")
        assert b"\x1b" not in answer.body


@pytest.mark.parametrize("setting", ["settings", "generations"])
def test_the_page_of_a_campaign_without_a_setting_says_so(
    served: Served, runs: Path, setting: str
) -> None:
    config = content(runs / "good", layout.CONFIG)
    for fields in (config["request"]["settings"], config["request"]):
        fields.pop(setting, None)
    rewrite(runs / "good", layout.CONFIG, config)
    (remark,) = served.ask(f"api/run/{id_of(served)}").json()["remarks"]
    assert "are not those of a run of this version" in remark


def test_a_run_of_an_unknown_kind_is_listed_and_its_page_says_so(
    served: Served, runs: Path
) -> None:
    config = content(runs / "good", layout.CONFIG)
    rewrite(runs / "good", layout.CONFIG, config | {"kind": "something new"})
    line = served.runs()["good"]
    assert (line["kind"], line["table"], line["remark"]) == ("something new", "made-up", "")
    (remark,) = served.ask(f"api/run/{line['id']}").json()["remarks"]
    assert "holds a 'something new', which this version does not know" in remark


def test_a_name_that_is_not_text_is_shown_with_escapes(campaign: Path, runs: Path) -> None:
    shutil.copytree(campaign, os.fsdecode(os.fsencode(runs) + b"/bad-\xff\n\x1b[2J"))
    with serving(runs) as served:
        (name,) = set(served.runs()) - {"good"}
        assert name == "bad-\\udcff\\n\\x1b[2J"
        assert served.ask(f"run/{id_of(served, name)}").status == 200
        assert served.ask().status == 200


def test_nothing_in_the_folder_is_changed_or_locked(served: Served, runs: Path) -> None:
    def state() -> dict[Path, tuple[int, int]]:
        return {p: (p.stat().st_mtime_ns, p.stat().st_size) for p in runs.rglob("*")}

    before = state()
    id = id_of(served)
    for path in ("", f"run/{id}", f"api/run/{id}", f"compare?run={id}"):
        assert served.ask(path).status == 200
    assert state() == before
    # A resumed campaign gets its lock while the page is asked for.
    discovery(runs / "good", resume=True, generations=8).run()
    assert served.runs()["good"]["progress"] == "generation 8 of 6"


def test_a_directory_whose_name_is_not_utf8_has_a_line_and_a_page(runs: Path) -> None:
    os.rename(runs / "good", os.fsencode(runs) + b"/caf\xe9")
    with serving(runs) as served:
        [line] = served.runs().values()
        assert line["name"] == r"caf\udce9"
        assert line["state"] == "finished"
        for path in ("", f"run/{line['id']}", f"api/run/{line['id']}", f"compare?run={line['id']}"):
            assert served.ask(path).status == 200, path


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: 127"])
def test_who_does_not_finish_a_request_is_disconnected(
    runs: Path, sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lpzero.dashboard.server.SLOW", 0.05)
    with (
        serving(runs) as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection,
    ):
        connection.sendall(sent)
        with suppress(ConnectionResetError):
            assert connection.recv(100) == b""


def test_who_does_not_read_the_answer_is_disconnected(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, size = threading.Event(), 64 << 20
    lose = Connection.connection_lost

    def lost(connection: Connection, error: Exception | None) -> None:
        lose(connection, error)
        closed.set()

    monkeypatch.setattr(Connection, "connection_lost", lost)
    monkeypatch.setattr("lpzero.dashboard.server.SLOW", 0.3)
    monkeypatch.setattr("lpzero.dashboard.server._content", lambda name: b"x" * size)
    with (
        serving(runs) as served,
        socket.create_connection(("127.0.0.1", served.port), timeout=60) as connection,
    ):
        request = f"GET {served.base}static/live.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        connection.sendall(request.encode())
        assert closed.wait(60)
        n_bytes = 0
        with suppress(ConnectionResetError):
            while piece := connection.recv(1 << 20):
                n_bytes += len(piece)
        assert 0 < n_bytes < size
        assert served.ask("api/runs").status == 200, "others are still answered"


def test_a_supernet_beside_a_campaign_is_compared_without_its_curve(
    campaign: Path, tmp_path: Path
) -> None:
    words = ["train", "nano-autoformer", "--supernet", "--steps", "1", "--batch", "2"]
    out = tmp_path / "runs" / "supernet"
    assert run([*words, "--images", "2", "--quiet", "--out", str(out)]) == 0
    ignored = shutil.ignore_patterns("report")
    shutil.copytree(campaign, tmp_path / "runs" / "good", ignore=ignored)
    with serving(tmp_path / "runs") as served:
        asked = "&".join(f"run={id_of(served, name)}" for name in ("supernet", "good"))
        answer = served.ask(f"compare?{asked}")
    assert answer.status == 200
    assert b"supernet" in answer.body
