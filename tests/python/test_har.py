"""Pages from HAR files as browsers and tools write them (tests/data/har)."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from fullpipe.base.errors import UserError
from fullpipe.scenario.har import levels_of_har, page_of_har

HARS = Path(__file__).parents[1] / "data" / "har"


def test_chrome_says_whole_answers_and_redirects_precede_the_document() -> None:
    page = page_of_har(HARS / "chrome.har")
    assert page.levels == [["214B"], ["18304B"], ["50123B", "87B", "31B"]]
    assert page.notes == [
        "2 answers left out: from the cache", "1 answer left out: no address in the network",
        "1 answer left out: none came",
    ]  # fmt: skip


def test_firefox_counts_headers_as_body() -> None:
    page = page_of_har(HARS / "firefox.har")
    assert page.levels == [["240B"], ["21410B"], ["61390B", "180B", "150B"]]
    assert page.notes == ["1 answer left out: from the cache"]


def test_an_old_firefox_counts_the_body_alone_and_pushed_answers_have_status_0() -> None:
    page = page_of_har(HARS / "firefox-54.har")
    # Two fields in plain text: "content-encoding: gzip" and "content-length: 2900", and line ends.
    pushed = 2900 + len("content-encoding: gzip\r\ncontent-length: 2900\r\n")
    assert page.levels == [["2700B"], [f"{pushed}B", "335B", "1285B"]]
    assert page.notes == ["1 answer left out: from the cache"]


def test_safari_says_what_came_from_a_cache_and_content_length_what_was_packed() -> None:
    page = page_of_har(HARS / "safari.har")
    packed = 1500 + len("Content-Encoding: gzip\r\nContent-Length: 1500\r\n")
    assert page.levels == [["5510B"], [f"{packed}B"]]
    assert page.notes == ["2 answers left out: from the cache"]


def test_internet_explorer_counts_unpacked_bodies_and_groups_the_digits_of_lengths() -> None:
    assert levels_of_har(HARS / "internet-explorer.har") == [["1043B"], ["34559B", "376B"]]


def test_webpagetest_has_bytes_beside_the_answer_and_views_that_are_chosen() -> None:
    har = HARS / "webpagetest.har"
    assert levels_of_har(har, "page_1_0_1") == [["15230B"], ["8120B", "30310B", "120B"]]
    assert levels_of_har(har, "page_1_1_1") == [["15230B"], ["140B"]]


def test_browsertime_has_iterations_that_are_chosen() -> None:
    har = HARS / "browsertime.har"
    assert levels_of_har(har, "page_1_1") == [["12300B"], ["45600B", "190B"]]
    assert levels_of_har(har, "page_2_1") == [["12307B"], ["45607B", "190B"]]


def test_several_page_loads_are_listed_and_an_unknown_one_is_refused() -> None:
    with pytest.raises(UserError, match=r"2 page loads; choose one with --har-page: 'page_1_1' "
                       r"\(3 answers, 58090 B\), 'page_2_1' \(3 answers, 58104 B\)"):  # fmt: skip
        levels_of_har(HARS / "browsertime.har")
    with pytest.raises(UserError, match=r"page_3.*'page_1_1', 'page_2_1'"):
        levels_of_har(HARS / "browsertime.har", "page_3")


def har(tmp_path: Path, *responses: dict[str, Any]) -> Path:
    path = tmp_path / "page.har"
    entries = [{"response": response} for response in responses]
    path.write_text(json.dumps({"log": {"entries": entries}}), encoding="utf-8-sig")
    return path


@pytest.mark.parametrize(
    ("response", "size"),
    [
        ({"status": 200, "headersSize": 200, "bodySize": 1000}, 1200),
        ({"status": 200, "headersSize": -1, "bodySize": -1, "content": {"size": 700}}, 700),
        # RFC 9110, section 6.4.1: no body, whatever the content in the cache is.
        ({"status": 304, "headersSize": 90, "bodySize": -1, "content": {"size": 700}}, 90),
        ({"status": 204, "headersSize": 80, "bodySize": -1, "content": {"size": 0}}, 80),
        ({"status": 404, "headersSize": 70, "bodySize": 0}, 70),
        ({"status": 304, "headersSize": 90, "bodySize": 700, "content": {"size": 700}}, 90),
        # A proxy that counts no headers, though it lists "a: b" with its line end.
        ({"status": 200, "headersSize": 0, "bodySize": 50,
          "headers": [{"name": "a", "value": "b"}]}, 56),
        ({"status": 200, "_transferSize": -1, "headersSize": 10, "bodySize": 20}, 30),
        ({"status": 200, "_transferSize": None, "headersSize": 10, "bodySize": 20}, 30),
        # Headers as text, "server: x" and "a: bc" with their line ends.
        ({"status": 200, "headersSize": -1, "bodySize": 5,
          "headers": [{"name": "server", "value": "x"}, {"name": "a", "value": "bc"}]}, 23),
        # 181281 B of which compression saved 123675.
        ({"status": 200, "headersSize": -1, "bodySize": -1,
          "content": {"size": 181281, "compression": 123675}}, 57606),
        # HTTP/1.1 204 and an empty line.
        ({"status": 204, "headersSize": -1, "bodySize": -1}, 17),
    ],
)  # fmt: skip
def test_an_answer_counts_what_the_file_tells_of_it(
    tmp_path: Path, response: dict[str, Any], size: int
) -> None:
    assert levels_of_har(har(tmp_path, response)) == [[f"{size}B"]]


def test_a_request_without_an_answer_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "page.har"
    answers = [{"status": 200, "_transferSize": 500}, None, {}]
    path.write_text(json.dumps({"log": {"entries": [{"response": each} for each in answers]}}))
    page = page_of_har(path)
    assert page.levels == [["500B"]]
    assert page.notes == ["2 answers left out: none came"]
    path.write_text(json.dumps({"log": {"entries": [{"request": {}}]}}))
    with pytest.raises(UserError, match=r"log\.entries\.0\.response: is missing"):
        levels_of_har(path)


def test_an_answer_to_head_has_no_body(tmp_path: Path) -> None:
    path = tmp_path / "page.har"
    response = {"status": 200, "headersSize": 80, "bodySize": -1, "content": {"size": 0},
                "headers": [{"name": "Content-Length", "value": "5000"}]}  # fmt: skip
    entry = {"request": {"method": "HEAD", "url": "https://a.example/"}, "response": response}
    path.write_text(json.dumps({"log": {"entries": [entry]}}))
    assert levels_of_har(path) == [["80B"]]


def test_bad_sizes_are_refused_by_key(tmp_path: Path) -> None:
    for response, key in [
        ({"status": 200, "bodySize": True}, "log.entries.0.response.bodySize"),
        ({"status": 200, "_transferSize": 2**40}, "log.entries.0.response._transferSize"),
        ({"status": "ok"}, "log.entries.0.response.status"),
    ]:
        with pytest.raises(UserError, match=rf"page\.har: {key}: must be a number"):
            levels_of_har(har(tmp_path, response))


def test_only_addresses_in_the_network_count(tmp_path: Path) -> None:
    answer = {"status": 200, "_transferSize": 500}
    addresses = (
        "https://a.example/",
        "wss://a.example/feed",
        "chrome-extension://abc/x.js",
        "blob:https://a.example/1",
        "data:text/plain,x",
        "moz-extension://abc/y.js",
    )
    entries = [{"request": {"url": url}, "response": answer} for url in addresses]
    path = tmp_path / "page.har"
    path.write_text(json.dumps({"log": {"entries": entries}}))
    page = page_of_har(path)
    assert page.levels == [["500B"], ["500B"]]
    assert page.notes == ["4 answers left out: no address in the network"]


def test_pages_are_told_apart_by_number_too_and_refused_where_no_answer_names_one(
    tmp_path: Path,
) -> None:
    def written(*references: int | None) -> Path:
        entries = [
            {"response": {"status": 200, "_transferSize": 100 + index}, "pageref": reference}
            for index, reference in enumerate(references)
        ]
        path = tmp_path / "pages.har"
        path.write_text(json.dumps({"log": {"pages": [{"id": 1}, {"id": 2}], "entries": entries}}))
        return path

    with pytest.raises(UserError, match=r"2 page loads.*'1' \(1 answer, 100 B\), '2' \(1"):
        levels_of_har(written(1, 2))
    assert levels_of_har(written(1, 2), "2") == [["101B"]]
    with pytest.raises(UserError, match=r"log\.pages: 2, of which no answer names its own; give"):
        levels_of_har(written(None, None))


def test_a_har_may_be_compressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = gzip.compress((HARS / "browsertime.har").read_bytes())
    path = tmp_path / "browsertime.har.gz"
    path.write_bytes(packed)
    assert levels_of_har(path, "page_1_1") == levels_of_har(HARS / "browsertime.har", "page_1_1")
    path.write_bytes(packed[:-20])
    with pytest.raises(UserError, match="its gzip is cut off"):
        levels_of_har(path)
    monkeypatch.setattr("fullpipe.scenario.har.MAX_FILE_BYTES", 2**20)
    path.write_bytes(gzip.compress(bytes(2**20 + 1)))
    with pytest.raises(UserError, match="holds more than 1 MiB"):
        levels_of_har(path)


def test_a_har_of_which_nothing_came_says_why(tmp_path: Path) -> None:
    file = har(tmp_path, {"status": 0, "_transferSize": 0}, {"status": 200, "_transferSize": 0})
    with pytest.raises(UserError, match=r"no answer came .* \(1 answer left out: none came; 1 an"):
        levels_of_har(file)
