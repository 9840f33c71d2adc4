"""A file of another kind is named for what it is."""

import json
from typing import Any

import pytest

from fullpipe.base.filekind import kind_of, no_such_file


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ({"start": {"test_start": {}}, "intervals": [], "end": {}}, "an iperf3 result"),
        ({"start": {}, "intervals": [], "end": {}, "error": "x"}, "an iperf3 result"),
        ({"dl_throughput": 1, "ul_throughput": 2, "responsiveness": 3}, "a networkQuality result"),
        ({"log": {"version": "1.2", "entries": []}}, "a HAR"),
        ({"qlog_version": "0.3", "traces": []}, "a qlog"),
        ({"metadata": {}, "results": {}, "x_values": []}, "a Flent file"),
        ([{"ifname": "eth0"}], "output of tc or ip"),
    ],
)
def test_json_of_a_known_tool_is_named(document: Any, kind: str) -> None:
    assert str(kind_of(document)).startswith(kind)
    assert str(kind_of(json.dumps(document).encode())).startswith(kind)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        # pcap-savefile(5), both byte orders and both units of time; pcapng (IETF draft).
        (b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00", "a capture of packets (pcap)"),
        (b"\x4d\x3c\xb2\xa1\x02\x00\x04\x00", "a capture of packets (pcap)"),
        (b"\x0a\x0d\x0d\x0a\x1c\x00\x00\x00", "a capture of packets (pcapng)"),
        (b'\x1e{"qlog_version":"0.3","qlog_format":"JSON-SEQ"}\n\x1e{}\n', "a qlog"),
        (b'{"qlog_format":"NDJSON","qlog_version":"0.3"}\n{"time":1}\n', "a qlog"),
        (b'{"event":"start","data":{}}\n{"event":"end","data":{}}\n', "an iperf3 result"),
        (b'\xef\xbb\xbf{"log": {"entries": []}}', "a HAR"),
        (b'{"base_rtt": 22.1, "dl_flows": 12, "dl_throughput": 300', "a networkQuality result"),
        (b"==== SUMMARY ====\nResponsiveness: Low (700 RPM)\n", "the text that networkQuality"),
        (b"Connecting to host b, port 5201\n", "the text that iperf3 prints"),
        ('{"log": {"entries": []}}'.encode("utf-16"), "a HAR"),
        (b'[{"dl_throughput": 1, "ul_throughput": 2}]', "a list of which each item is a network"),
        (b"PAR1\x15\x04", "a Parquet file"),
    ],
)
def test_first_bytes_tell_a_kind(content: bytes, kind: str) -> None:
    assert str(kind_of(content)).startswith(kind)


@pytest.mark.parametrize("content", [b"", b"{", b"duration = '5s'", b"[1, 2]", {}, [], 3, None])
def test_what_is_unknown_is_not_named(content: Any) -> None:
    assert kind_of(content) is None
    assert no_such_file("HAR", content) is None
