"""Names from a debuginfod server: asked only where the user wants it, once, and trusted no more than a file."""
import http.server
import os
import re
import shutil
import subprocess
import threading

import pytest
from conftest import SANITIZE
from named_program import (WHOLE, box, build_id, needs_objcopy, places, quickly, record, render,
                           split_debug)


class DebugServer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        body = self.server.files.get(self.path)
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *arguments):
        pass


@pytest.fixture
def debug_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), DebugServer)
    server.asked, server.files = [], {}
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def has_debuginfod():
    return subprocess.run(["/usr/bin/python3", "-c", "import ctypes; ctypes.CDLL('libdebuginfod.so.1')"],
                          capture_output=True).returncode == 0


@needs_objcopy
@pytest.mark.skipif(not has_debuginfod(), reason="libdebuginfod.so.1 is not here (Debian: libdebuginfod1)")
@pytest.mark.parametrize("is_here", [True, False], ids=["stripped", "gone"])
def test_debuginfod_is_asked_only_where_the_user_wants_it(gmt, box, debug_server, is_here):
    path = box()
    debug = gmt.folder / "served" / "debug"
    split_debug(path, debug)
    asked_for = f"/buildid/{build_id(debug)}/debuginfo"
    debug_server.files[asked_for] = debug.read_bytes()
    stripped = shutil.copy2(path, gmt.folder / "stripped")
    recording = record(gmt, path)
    shutil.rmtree(debug.parent)
    if not is_here:
        os.unlink(path)
    env = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{debug_server.server_port}/", "NO_PROXY": "127.0.0.1",
           "no_proxy": "127.0.0.1", "DEBUGINFOD_CACHE_PATH": str(gmt.folder / "cache")}
    for unset in (None, ""):
        report = render(gmt, recording, env={**env, "DEBUGINFOD_URLS": unset})
        assert places(report)[0][1:] == (None, None)
        assert not any("DEBUGINFOD_URLS" in note for note in report["notes"])
    assert debug_server.asked == []
    assert places(render(gmt, recording, env=env)) == WHOLE
    assert asked_for in debug_server.asked
    # The server is as little trusted as a file: it has another build of the program.
    subprocess.run(["objcopy", "--only-keep-debug", box("-O0"), gmt.folder / "other"], check=True)
    debug_server.files[asked_for] = (gmt.folder / "other").read_bytes()
    if is_here:
        shutil.copy2(stripped, path)
    else:
        os.unlink(path)
    assert places(render(gmt, recording, env={**env, "DEBUGINFOD_CACHE_PATH": str(gmt.folder / "new")}))[0][1:] == \
        (None, None)


@needs_objcopy
@pytest.mark.skipif(bool(SANITIZE), reason="LD_LIBRARY_PATH is for one library only")
def test_missing_debuginfod_library_is_said(gmt, box):
    path = box()
    subprocess.run(["objcopy", "--strip-all", path], check=True)
    recording = record(gmt, path)
    (gmt.folder / "libdebuginfod.so.1").write_bytes(b"")
    env = {"LD_LIBRARY_PATH": str(gmt.folder)}
    note = "DEBUGINFOD_URLS is set, but libdebuginfod.so.1 (Debian: libdebuginfod1) cannot be used."
    assert render(gmt, recording, env=env)["notes"] == []
    assert render(gmt, recording, env={**env, "DEBUGINFOD_URLS": "http://127.0.0.1:1/"})["notes"] == [note]


@needs_objcopy
@pytest.mark.skipif(not has_debuginfod(), reason="libdebuginfod.so.1 is not here (Debian: libdebuginfod1)")
def test_debuginfod_that_does_not_answer_is_asked_once(gmt, box, debug_server):
    path = box()
    subprocess.run(["objcopy", "--strip-all", path], check=True)
    identity, recording = build_id(path), record(gmt, path)
    os.unlink(path)  # so that there would be two questions: for the debug file, and for the program
    env = {"DEBUGINFOD_URLS": f"http://127.0.0.1:{debug_server.server_port}/", "NO_PROXY": "127.0.0.1",
           "no_proxy": "127.0.0.1", "DEBUGINFOD_CACHE_PATH": str(gmt.folder / "cache")}
    render(gmt, recording, env=env)
    mine = [question for question in debug_server.asked if question.startswith(f"/buildid/{identity}/")]
    assert len(mine) == 2
    debug_server.shutdown()
    debug_server.socket.close()
    env["DEBUGINFOD_CACHE_PATH"] = str(gmt.folder / "other")
    notes = quickly(render, gmt, recording, env=env)["notes"]
    assert any(re.fullmatch(r"debuginfod \(DEBUGINFOD_URLS\) failed and was asked no further: .+\.", note)
               for note in notes), notes
