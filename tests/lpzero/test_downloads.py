"""Downloads against a real HTTP server on loopback."""

from __future__ import annotations

import hashlib
import io
import re
import tarfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lpzero.downloads import Fetched, fetch
from lpzero.errors import WriteError
from spaces.errors import FetchError, TableError
from spaces.tables import registry
from spaces.tables.source import tree_digest

SISTERS = ("pit-c100-kd", "pit-flowers")
CONTENT = bytes(range(256)) * 1000
FOLDER = "logs/random"
MEMBERS = r"\w+_summary\.yaml|\w+/model_config\.yaml"
TREE = {"ppl_summary.yaml": b"a: 1\n", "a/model_config.yaml": b"d: 2\n"}


class Server(ThreadingHTTPServer):
    """Serves `body` under every address; the flags make it misbehave."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.body = b""
        self.status = 200
        self.honours_range = True
        self.wrong_range = False
        self.chunked = False
        # How many bytes of each answer really go out before the connection closes.
        self.cut_after: list[int] = []
        self.requests: list[tuple[str, str | None]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, wanted = self.server, self.headers.get("Range")
        server.requests.append((self.path, wanted))
        if server.status != 200:
            self.send_error(server.status)
            return
        start = 0
        match = re.fullmatch(r"bytes=(\d+)-", wanted or "")
        if match and server.honours_range:
            start = int(match[1])
            if start >= len(server.body):
                self.send_error(416)
                return
            self.send_response(206)
            told = start + 1 if server.wrong_range else start
            end = len(server.body)
            self.send_header("Content-Range", f"bytes {told}-{end - 1}/{end}")
        else:
            self.send_response(200)
        if not server.chunked:
            self.send_header("Content-Length", str(len(server.body) - start))
        self.end_headers()
        sent = server.body[start:]
        self.wfile.write(sent[: server.cut_after.pop(0)] if server.cut_after else sent)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def digest_of(tree: dict[str, bytes], tmp_path: Path) -> str:
    folder = tmp_path / "expected"
    for name, content in tree.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return tree_digest(folder, MEMBERS)


@pytest.fixture
def register(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point flexibert, two vision tables and gpt2-wt103 at the content of this test."""
    changed = {}
    for name, digest in (
        *((name, hashlib.sha256(CONTENT).hexdigest()) for name in ("flexibert", *SISTERS)),
        ("gpt2-wt103", digest_of(TREE, tmp_path)),
    ):
        entry = registry.source(name)
        assert entry.origin is not None
        origin = replace(entry.origin, digest=digest)
        if origin.members is not None:
            origin = replace(origin, path=FOLDER, members=MEMBERS)
        changed[name] = replace(entry, origin=origin)
    monkeypatch.setattr(registry, "_SOURCES", registry._SOURCES | changed)


@pytest.fixture
def get(server: Server, tmp_path: Path, register: None) -> Callable[..., Fetched]:
    def run(name: str = "flexibert", **options: Any) -> Fetched:
        root = tmp_path / "root"
        return fetch(
            name, root, files=server.address, archives=server.address, timeout=60.0, **options
        )

    return run


def archive(extra: Callable[[tarfile.TarFile], None] | None = None) -> bytes:
    """An archive as a forge makes it: one top folder, more in it than wanted."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        files = {f"{FOLDER}/{name}": content for name, content in TREE.items()}
        files |= {f"{FOLDER}/a/train.log": b"long", "README.md": b"hello", "logs/other.yaml": b"x"}
        for name, content in files.items():
            add(tar, f"repo-123/{name}", content)
        if extra:
            extra(tar)
    return buffer.getvalue()


def add(tar: tarfile.TarFile, name: str, content: bytes = b"", **fields: Any) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in fields.items():
        setattr(info, key, value)
    tar.addfile(info, io.BytesIO(content))


def leftovers(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("*") if path.name.startswith("."))


def test_a_file_is_downloaded_verified_and_put_in_place(
    server: Server, get: Callable[..., Fetched]
) -> None:
    server.body = CONTENT
    seen: list[tuple[int, int | None]] = []
    fetched = get(progress=lambda done, total: seen.append((done, total)))
    assert fetched.downloaded
    assert fetched.path.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert server.requests[0][0].endswith("/data/BERT_benchmark.json")
    assert leftovers(fetched.path.parent) == []


def test_a_second_call_does_nothing(server: Server, get: Callable[..., Fetched]) -> None:
    server.body = CONTENT
    get()
    assert not get().downloaded
    assert len(server.requests) == 1


def test_a_truncated_body_is_an_error_and_the_next_call_resumes(
    server: Server, get: Callable[..., Fetched], tmp_path: Path
) -> None:
    server.body, server.cut_after = CONTENT, [100_000]
    with pytest.raises(FetchError, match=r"closed after 100000 of 256000 bytes; run the same comm"):
        get()
    assert not (tmp_path / "root/flexibert/BERT_benchmark.json").exists()
    assert get().path.read_bytes() == CONTENT
    assert [wanted for _, wanted in server.requests] == [None, "bytes=100000-"]


def test_a_server_without_ranges_restarts_cleanly(
    server: Server, get: Callable[..., Fetched]
) -> None:
    server.body, server.cut_after, server.honours_range = CONTENT, [100_000], False
    with pytest.raises(FetchError, match="closed after"):
        get()
    assert get().path.read_bytes() == CONTENT


def test_a_part_as_long_as_the_file_restarts_when_the_server_refuses_the_range(
    server: Server, get: Callable[..., Fetched], tmp_path: Path
) -> None:
    part = tmp_path / "root/flexibert/.BERT_benchmark.json.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"?" * len(CONTENT))
    server.body = CONTENT
    assert get().path.read_bytes() == CONTENT


def test_a_part_of_something_else_is_thrown_away_and_fetched_whole(
    server: Server, get: Callable[..., Fetched], tmp_path: Path
) -> None:
    part = tmp_path / "root/flexibert/.BERT_benchmark.json.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"?" * 1000)
    server.body = CONTENT
    assert get().path.read_bytes() == CONTENT
    assert [wanted for _, wanted in server.requests] == ["bytes=1000-", None]


def test_a_different_range_is_refused(server: Server, get: Callable[..., Fetched]) -> None:
    server.body, server.cut_after = CONTENT, [1000]
    with pytest.raises(FetchError, match="closed after"):
        get()
    server.wrong_range = True
    with pytest.raises(FetchError, match="a different range"):
        get()


def test_a_wrong_checksum_installs_nothing_and_keeps_nothing(
    server: Server, get: Callable[..., Fetched], tmp_path: Path
) -> None:
    server.body = CONTENT[:-1] + b"?"
    with pytest.raises(FetchError, match=r"table flexibert: wrong checksum, got SHA-256 \w{64}"):
        get()
    assert [path for path in (tmp_path / "root").rglob("*") if path.is_file()] == []


def test_a_missing_address_is_an_error_with_its_code(
    server: Server, get: Callable[..., Fetched]
) -> None:
    server.status = 404
    with pytest.raises(
        FetchError, match=r"BERT_benchmark\.json: the server answered 404 Not Found"
    ):
        get()


def test_no_server_is_an_error(tmp_path: Path, register: None) -> None:
    with pytest.raises(FetchError, match="refused; run the same command again"):
        fetch("flexibert", tmp_path, files="http://127.0.0.1:9", timeout=2.0)


def test_other_content_is_replaced_only_by_force(
    server: Server, get: Callable[..., Fetched], tmp_path: Path
) -> None:
    path = tmp_path / "root/flexibert/BERT_benchmark.json"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    server.body = CONTENT
    with pytest.raises(FetchError, match="move it away, or give --force"):
        get()
    assert path.read_text() == "mine"
    assert get(force=True).path.read_bytes() == CONTENT


def test_a_folder_is_unpacked_without_what_nobody_reads(
    server: Server, get: Callable[..., Fetched]
) -> None:
    server.body = archive()
    fetched = get("gpt2-wt103")
    files = (path for path in fetched.path.rglob("*") if path.is_file())
    found = {path.relative_to(fetched.path).as_posix(): path.read_bytes() for path in files}
    assert found == TREE
    assert leftovers(fetched.path.parent) == []
    assert "/tar.gz/" in server.requests[0][0]
    assert not get("gpt2-wt103").downloaded


def test_a_folder_with_other_content_is_replaced_by_force(
    server: Server, get: Callable[..., Fetched], tmp_path: Path
) -> None:
    folder = tmp_path / "root/lts/random_GPT2_wt103"
    folder.mkdir(parents=True)
    (folder / "ppl_summary.yaml").write_text("mine")
    server.body = archive()
    with pytest.raises(FetchError, match="--force"):
        get("gpt2-wt103")
    get("gpt2-wt103", force=True)
    assert (folder / "ppl_summary.yaml").read_bytes() == TREE["ppl_summary.yaml"]
    assert leftovers(folder.parent) == []


def test_a_truncated_archive_of_unknown_length_is_an_error(
    server: Server, get: Callable[..., Fetched], tmp_path: Path
) -> None:
    whole = archive()
    server.body, server.chunked = whole[: len(whole) // 2], True
    with pytest.raises(FetchError, match="broken or truncated archive"):
        get("gpt2-wt103")
    assert [path for path in (tmp_path / "root").rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("trick", "message"),
    [
        (lambda tar: add(tar, "repo-123/../../evil", b"x"), "unsafe member 'repo-123/../../evil'"),
        (lambda tar: add(tar, "/tmp/evil", b"x"), "unsafe member '/tmp/evil'"),
        (
            lambda tar: add(
                tar,
                f"repo-123/{FOLDER}/b_summary.yaml",
                type=tarfile.SYMTYPE,
                linkname="/etc/passwd",
            ),
            "'.*b_summary.yaml' is not a regular file",
        ),
        (
            lambda tar: add(
                tar, f"repo-123/{FOLDER}/b_summary.yaml", type=tarfile.LNKTYPE, linkname="README.md"
            ),
            "'.*b_summary.yaml' is not a regular file",
        ),
        (lambda tar: add(tar, f"repo-123/{FOLDER}/ppl_summary.yaml", b"y"), "is duplicated"),
        (
            lambda tar: add(tar, f"repo-123/{FOLDER}/c_summary.yaml", bytes(17 << 20)),
            "'.*c_summary.yaml' is too large",
        ),
    ],
    ids=["parent", "absolute", "symlink", "hardlink", "twice", "large"],
)
def test_an_archive_that_tries_to_escape_is_refused(
    server: Server,
    get: Callable[..., Fetched],
    tmp_path: Path,
    trick: Callable[[tarfile.TarFile], None],
    message: str,
) -> None:
    server.body = archive(trick)
    with pytest.raises(FetchError, match=message):
        get("gpt2-wt103")
    assert [path for path in (tmp_path / "root").rglob("*") if path.is_file()] == []
    assert not (tmp_path / "evil").exists()


def test_odd_members_elsewhere_in_the_repository_do_not_matter(
    server: Server, get: Callable[..., Fetched]
) -> None:
    def odd(tar: tarfile.TarFile) -> None:
        add(tar, "repo-123/docs/a:b\\c.txt", b"x")
        add(tar, "repo-123/docs/link", type=tarfile.SYMTYPE, linkname="../README.md")
        add(tar, "repo-123/data.bin", bytes(17 << 20))

    server.body = archive(odd)
    assert get("gpt2-wt103").downloaded


def test_an_archive_with_other_files_fails_the_checksum(
    server: Server, get: Callable[..., Fetched]
) -> None:
    server.body = archive(lambda tar: add(tar, f"repo-123/{FOLDER}/d_summary.yaml", b"more"))
    with pytest.raises(FetchError, match="table gpt2-wt103: wrong checksum"):
        get("gpt2-wt103")


def test_a_shipped_table_needs_no_fetching(
    server: Server,
    get: Callable[..., Fetched],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "nano.json"
    shipped = replace(registry.source("nano-gpt2"), path=path)
    monkeypatch.setattr(registry, "_SOURCES", {"nano-gpt2": shipped})
    with pytest.raises(TableError, match="part of the package: reinstall"):
        get("nano-gpt2")
    path.touch()
    assert get("nano-gpt2") == Fetched("nano-gpt2", path, downloaded=False)
    assert server.requests == []


def test_a_place_that_cannot_be_written_is_not_blamed_on_the_server(
    server: Server, get: Callable[..., Fetched], tmp_path: Path
) -> None:
    server.body = CONTENT
    (tmp_path / "root/flexibert/.BERT_benchmark.json.part").mkdir(parents=True)
    with pytest.raises(WriteError, match="Is a directory"):
        get()


def test_fetching_without_a_place_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LPZERO_DATA", raising=False)
    with pytest.raises(TableError, match="no folder for flexibert: set LPZERO_DATA"):
        fetch("flexibert")


def test_tables_of_one_file_are_fetched_together(
    server: Server, get: Callable[..., Fetched]
) -> None:
    server.body = CONTENT
    first, second = (get(name) for name in SISTERS)
    assert (first.downloaded, second.downloaded) == (True, False)
    assert first.path == second.path
    assert first.path.name == "gt_pit.pth"
    [(path, _)] = server.requests
    commit = "90ed458eff6948a6f0d23e440a8d21bbec50d091"
    assert path == f"/lliai/Auto-Prox-AAAI24/{commit}/gt_results/gt_pit.pth"
