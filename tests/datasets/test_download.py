"""Downloads: resumed, checked, complete or absent, and what people are told where they fail."""

import errno
import os
import shutil
import threading

import numpy as np
import pytest

from fishergraph.datasets import download, fetch, load_graph
from fishergraph.datasets.download import check_file, fetch_file
from fishergraph.datasets.sources import SOURCES, TU_FILES, File
from published import N, Web, example, ogb_files, sha256, shchur_file, zipped

CONTENT = np.random.default_rng(0).bytes(300_000)


@pytest.fixture
def web():
    web = Web()
    web.files["file.bin"] = CONTENT
    yield web
    web.close()


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(download, "CHUNK", 1000)


def a_file(web, **options):
    return File("some/file.bin", web.url + "file.bin", **options)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_and_its_checksum(web, tmp_path):
    path = fetch_file(a_file(web, sha256=sha256(CONTENT)), tmp_path)
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == ["file.bin", "file.bin.sha256"]
    assert (path.parent / "file.bin.sha256").read_text() == f"{sha256(CONTENT)}  file.bin\n"
    fetch_file(a_file(web, sha256=sha256(CONTENT)), tmp_path)
    assert len(web.requests) == 1


def test_a_broken_connection_is_taken_up_where_it_broke(web, tmp_path):
    web.break_after = 100_000
    assert fetch_file(a_file(web), tmp_path).read_bytes() == CONTENT
    assert web.requests == [("file.bin", asked) for asked in (None, "bytes=100000-", "bytes=200000-")]
    assert names(tmp_path / "some") == ["file.bin", "file.bin.sha256"]


def test_a_killed_download_is_taken_up_by_the_next_call(web, tmp_path, monkeypatch):
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    web.break_after = 120_000
    with pytest.raises(ConnectionError, match="120,000 bytes are kept"):
        fetch_file(a_file(web), tmp_path)
    assert names(tmp_path / "some") == ["file.bin.part", "file.bin.part.tag"]
    web.break_after = None
    assert fetch_file(a_file(web), tmp_path).read_bytes() == CONTENT
    assert web.requests[-1] == ("file.bin", "bytes=120000-")
    assert names(tmp_path / "some") == ["file.bin", "file.bin.sha256"]


@pytest.mark.parametrize("known", [True, False])
def test_a_part_of_another_version_is_begun_again(web, tmp_path, monkeypatch, known):
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    web.break_after = 120_000
    with pytest.raises(ConnectionError):
        fetch_file(a_file(web), tmp_path)
    web.break_after, web.files["file.bin"] = None, CONTENT[::-1]
    checksum = sha256(CONTENT[::-1]) if known else None
    assert fetch_file(a_file(web, sha256=checksum), tmp_path).read_bytes() == CONTENT[::-1]


def test_a_server_that_cannot_send_the_rest_sends_all(web, tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "file.bin.part").write_bytes(b"?" * 500)
    web.ranges = False
    assert fetch_file(a_file(web, sha256=sha256(CONTENT)), tmp_path).read_bytes() == CONTENT


@pytest.mark.parametrize("checksum", [None, sha256(CONTENT)], ids=["unknown", "known"])
def test_a_part_longer_than_the_file_is_begun_again(web, tmp_path, checksum):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "file.bin.part").write_bytes(CONTENT + b"more")
    assert fetch_file(a_file(web, sha256=checksum), tmp_path).read_bytes() == CONTENT


def test_a_part_that_lacks_nothing_is_accepted(web, tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "file.bin.part").write_bytes(CONTENT)
    assert fetch_file(a_file(web, sha256=sha256(CONTENT)), tmp_path).read_bytes() == CONTENT
    assert web.requests == [("file.bin", "bytes=300000-")]


def test_another_part_than_was_asked_for_is_not_added(web, tmp_path, monkeypatch):
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "file.bin.part").write_bytes(CONTENT[:5000])
    monkeypatch.setattr(download, "_continues", lambda response, have: False)
    with pytest.raises(ConnectionError, match="another range"):
        fetch_file(a_file(web, sha256=sha256(CONTENT)), tmp_path)


def test_a_wrong_checksum_removes_the_download_and_says_so(web, tmp_path):
    with pytest.raises(ValueError, match=sha256(CONTENT)):
        fetch_file(a_file(web, sha256="0000"), tmp_path)
    assert names(tmp_path / "some") == []


def test_the_first_download_is_trusted_and_binds_the_next(web, tmp_path):
    path = fetch_file(a_file(web), tmp_path)
    path.write_bytes(b"tampered")
    with pytest.raises(ValueError, match="renamed"):
        fetch_file(a_file(web), tmp_path)
    assert names(tmp_path / "some") == ["file.bin.old", "file.bin.sha256"]
    assert (tmp_path / "some" / "file.bin.old").read_bytes() == b"tampered"
    (tmp_path / "some" / "file.bin.old").unlink()
    web.files["file.bin"] = b"another"
    with pytest.raises(ValueError, match=sha256(CONTENT)):
        fetch_file(a_file(web), tmp_path)
    web.files["file.bin"] = CONTENT
    assert fetch_file(a_file(web), tmp_path).read_bytes() == CONTENT
    assert names(tmp_path / "some") == ["file.bin", "file.bin.sha256"]


def test_a_look_before_use_reads_only_files_that_changed(web, tmp_path, monkeypatch):
    path = fetch_file(a_file(web), tmp_path)
    read = []
    monkeypatch.setattr(download, "_sha256", lambda path: read.append(path) or "other")
    check_file(path)
    assert read == []
    os.utime(path, ns=(2**62, 2**62))
    with pytest.raises(ValueError, match="renamed to"):
        check_file(path)
    assert read == [path]


def test_a_file_of_ones_own_is_left_alone(tmp_path):
    (tmp_path / "own.npz").write_bytes(b"mine")
    check_file(tmp_path / "own.npz")
    assert (tmp_path / "own.npz").read_bytes() == b"mine"


def test_a_file_of_ones_own_under_a_published_name_is_kept(web, tmp_path):
    """Three times over, each under a name of its own."""
    own = tmp_path / "some" / "file.bin"
    own.parent.mkdir()
    for number, aside in enumerate(("file.bin.old", "file.bin.old-2", "file.bin.old-3")):
        own.write_bytes(f"mine {number}".encode())
        with pytest.raises(ValueError, match=rf"renamed to '.*/{aside}'"):
            fetch_file(a_file(web, sha256=sha256(CONTENT)), tmp_path)
        assert (own.parent / aside).read_bytes() == f"mine {number}".encode()
    assert web.requests == []
    assert fetch_file(a_file(web, sha256=sha256(CONTENT)), tmp_path).read_bytes() == CONTENT
    assert names(own.parent) == ["file.bin", "file.bin.old", "file.bin.old-2", "file.bin.old-3", "file.bin.sha256"]


def test_the_part_of_a_download_that_nobody_needs_is_removed(web, tmp_path):
    path = fetch_file(a_file(web), tmp_path)
    (path.parent / "file.bin.part").write_bytes(b"half")
    (path.parent / "file.bin.part.tag").write_text("tag")
    fetch_file(a_file(web), tmp_path)
    assert names(path.parent) == ["file.bin", "file.bin.sha256"]


def test_no_such_file_and_no_such_server(web, tmp_path):
    with pytest.raises(ConnectionError, match="404"):
        fetch_file(File("some/file.bin", web.url + "nothing.bin"), tmp_path)
    web.close()
    with pytest.raises(ConnectionError, match="network"):
        fetch_file(a_file(web), tmp_path)
    assert names(tmp_path / "some") == []


def test_a_full_disk_is_found_before_it_is_full(web, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(OSError, match="300,000") as caught:
        fetch_file(a_file(web), tmp_path)
    assert not isinstance(caught.value, ConnectionError)
    assert len(web.requests) == 1


def test_a_folder_without_rights(web, tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()

    def refuse(*arguments, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(PermissionError, match="Permission denied"):
        fetch_file(a_file(web), tmp_path / "closed")
    assert web.requests == []


def test_a_file_in_place_of_the_folder(web, tmp_path):
    (tmp_path / "some").write_text("a file")
    with pytest.raises(PermissionError, match="data folder"):
        fetch_file(a_file(web), tmp_path)


def test_two_at_once_do_not_mix(web, tmp_path):
    pytest.importorskip("fcntl")
    done = []
    threads = [threading.Thread(target=lambda: done.append(fetch_file(a_file(web), tmp_path))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 4
    assert done[0].read_bytes() == CONTENT
    assert len(web.requests) == 1
    assert names(tmp_path / "some") == ["file.bin", "file.bin.sha256"]


def test_progress_is_told_in_bytes(web, tmp_path):
    told = []

    class Bar:
        def __init__(self, title, total):
            told.append((title, total))

        def __enter__(self):
            return self

        def __exit__(self, *exception):
            pass

        def update(self, n):
            told.append(n)

    web.break_after = 200_000
    fetch_file(a_file(web), tmp_path, Bar)
    assert [entry for entry in told if isinstance(entry, tuple)] == [("file.bin", 300_000)] * 2
    assert sum(entry for entry in told if isinstance(entry, int)) == 500_000  # 200,000, then these again and the rest


# --- published graphs -----------------------------------------------------------------------------------


def put_up(web, monkeypatch, name, content, **changes):
    """A source whose one file is on the server."""
    from dataclasses import replace

    source = SOURCES[name]
    file = replace(source.files[0], url=f"{web.url}{name}", sha256=None, **changes)
    web.files[name] = content
    monkeypatch.setitem(SOURCES, name, replace(source, files=(file,)))
    return file


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.delenv("FISHERGRAPH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "fishergraph"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ogbn-arxiv", zipped(ogb_files(example()), "arxiv/")),
        ("ogbn-products", zipped(ogb_files(example(), "sales_ranking"), "products/")),
        ("amazon-photo", shchur_file(example())),
    ],
)
def test_a_published_graph_is_downloaded_once(web, home, monkeypatch, name, content):
    file = put_up(web, monkeypatch, name, content)
    data = load_graph(name)
    assert (data.name, data.n_nodes, data.licence, data.source) == (name, N, SOURCES[name].licence, SOURCES[name].home)
    assert (home / file.path).is_file()
    assert load_graph(name.replace("-", "_")).n_nodes == N
    assert len(web.requests) == 1


def test_a_tampered_download_is_moved_aside_before_it_is_read(web, home, monkeypatch):
    file = put_up(web, monkeypatch, "ogbn-arxiv", zipped(ogb_files(example()), "arxiv/"))
    load_graph("ogbn-arxiv")
    content = (home / file.path).read_bytes()
    (home / file.path).write_bytes(content[: len(content) // 2])
    os.utime(home / file.path, ns=(2**62, 2**62))
    with pytest.raises(ValueError, match=r"SHA-256.*\.zip\.old'"):
        load_graph("ogbn-arxiv")
    assert load_graph("ogbn-arxiv").n_nodes == N
    assert len(web.requests) == 2


def test_fetch_lists_the_known_names(home):
    with pytest.raises(ValueError, match="'MUTAG'"):
        fetch("arxiv")


def test_fetch_into_a_folder_of_choice(web, tmp_path, monkeypatch):
    put_up(web, monkeypatch, "coauthor-cs", shchur_file(example()))
    (path,) = fetch("coauthor-cs", data_home=tmp_path)
    assert path == tmp_path / "coauthor-cs" / "ms_academic_cs.npz"
    web.files["MUTAG"] = b"PK"
    monkeypatch.setitem(TU_FILES, "MUTAG", File("tu/MUTAG.zip", web.url + "MUTAG"))
    assert fetch("MUTAG", data_home=tmp_path) == [tmp_path / "tu" / "MUTAG.zip"]


def test_the_table_is_sound():
    for name, source in SOURCES.items():
        assert source.name == name
        assert source.licence
        assert str(source.preparation).startswith("both directions of an edge")
        for file in source.files:
            assert file.url.startswith("https://")
            assert (file.sha256 is None) == file.checksum_from.startswith("stored")
            assert file.sha256 is None or len(bytes.fromhex(file.sha256)) == 32
    paths = [file.path for source in SOURCES.values() for file in source.files]
    assert len(set(paths)) == len(paths)
