import pytest

from tilelab.cli.book import faults_of


def test_faults_are_what_would_not_open_offline(tmp_path):
    (tmp_path / "b.html").write_text("<p>b</p>")
    (tmp_path / "a.html").write_text(
        '<script src="https://cdn.example/x.js"></script><a href="https://example.org">out</a><a href="b.html#x">in</a><img src="gone.png"><a href="#here">here</a>'
    )
    faults = list(faults_of(tmp_path))
    assert len(faults) == 2
    assert "cdn.example" in faults[0]
    assert "gone.png" in faults[1]


def test_a_folder_that_is_no_book(cli, tmp_path):
    done = cli("book", "build", tmp_path / "none")
    assert done.code == 2
    assert "tilelab book new" in done.err


@pytest.mark.slow
def test_a_new_book_builds_and_opens_offline(shell, tmp_path):
    assert shell("book", "new", "mine").code == 0
    again = shell("book", "new", "mine")
    assert again.code == 2
    assert "not empty" in again.err
    done = shell("book", "check", "mine", "-o", "out")
    assert done.code == 0, done.err
    assert done.out.strip() == "out/index.html"
    assert "Mine" in (tmp_path / "out/index.html").read_text()
