"""This host's curl and lighttpd for pages in the virtual machine, in place of the agent's own
client and server. Both programs and their libraries are copied in with the job.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fullpipe.base.errors import UserError
from fullpipe.plan.plan import Plan

#: The guest's folder of the job's files. The agent sets the document root
#: (crates/fullpipe-agent/src/flows/web.rs).
_FOLDER, _ROOT = "/bpf", "/run/web"
_PORT = 8080
_CONFIGURATION = "lighttpd.conf"
#: Bytes of lighttpd 1.4.69's response header for a file of 10 to 99 kB (a byte more for each digit
#: of its size), and of a request of curl 7.88: for plans that compare with other engines.
HEADER_BYTES, REQUEST_BYTES = 167, 82


def programs() -> dict[str, bytes]:
    """Files of both programs by name. Raises UserError if one is not installed."""
    files = {_CONFIGURATION: _configuration().encode()}
    for name in ("curl", "lighttpd"):
        path = shutil.which(name, path="/usr/local/bin:/usr/bin:/usr/sbin")
        if path is None:
            raise UserError(f"option web: needs {name}: apt-get install {name}")
        for file in (path, *_libraries(path)):
            files[Path(file).name] = Path(file).read_bytes()
    return files


def request(files: Mapping[str, bytes]) -> dict[str, Any]:
    """The agent's request (crates/fullpipe-agent/src/request.rs, Web)."""
    loader = next(name for name in files if name.startswith("ld-linux"))
    run = [f"{_FOLDER}/{loader}", "--library-path", _FOLDER]
    fetch = (
        "-q --silent --no-progress-meter --verbose --trace-time --http1.1 --parallel "
        "--parallel-immediate --parallel-max {connections} --output /dev/null"
    )
    url = f"http://{{address}}:{_PORT}/{{page}}/[0-{{last}}]"
    return {
        "server": [*run, f"{_FOLDER}/lighttpd", "-D", "-f", f"{_FOLDER}/{_CONFIGURATION}"],
        "client": [*run, f"{_FOLDER}/curl", *fetch.split(), url],
        "header_bytes": HEADER_BYTES,
    }


def refuse_pages(plan: Plan) -> None:
    """Raises UserError for pages that these programs cannot load as planned."""
    pages = plan.get("pages", [])
    if not pages:
        raise UserError("option web: the scenario has no page")
    for page in pages:
        for key, lacks in (
            ("protocol", page["protocol"] != "http1"),
            ("lookup", page["lookup"] != "none"),
            ("levels", len({item["level"] for item in page["objects"]}) > 1),
            ("keep_connections", page["keeps_connections"]),
            ("think", page["think_ns"] > 0),
            ("dscp", page["dscp"] > 0),
        ):
            if lacks:
                raise UserError(
                    f"page {page['name']}.{key}: curl and lighttpd load one level of objects by "
                    "http1, without a look-up, thinking, a DSCP or connections that are kept"
                )
    servers = [page["hosts"]["far"] for page in pages]
    if len(set(servers)) < len(servers):
        raise UserError("option web: each page needs a server of its own")


def _configuration() -> str:
    return f"""server.document-root = "{_ROOT}"
server.bind = "0.0.0.0"
server.port = {_PORT}
"""


def _libraries(program: str) -> list[str]:
    listing = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", listing)
