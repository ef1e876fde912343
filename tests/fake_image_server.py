"""A fake of an image API: pictures that follow from the request alone, and answers that are none."""

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import PIL.Image

from tests.pictures import encoded


def picture(seed: bytes) -> bytes:
    rng = np.random.default_rng(int.from_bytes(hashlib.sha256(seed).digest()[:4], "big"))
    return encoded(PIL.Image.fromarray(rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)))


class FakeImageServer:
    """Answers `images/generations` and `images/edits`; `answer(path, body)` may give another answer as (code, object).

    With `urls`, images are files of it, for which `file(path)` may give another answer as (code, bytes).
    """

    def __init__(self, answer=None, urls=False, file=None):
        self.requests, self.answer, self.urls, self.files, self.fetched = [], answer, urls, {}, []
        fake, lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with lock:
                    fake.requests.append((self.path, self.headers["Content-Type"], body))
                    number = len(fake.requests)
                code, found = (fake.answer or (lambda *_: None))(self.path, body) or (200, fake.images(body))
                self.send(code, json.dumps(found).encode(), number)

            def do_GET(self):
                with lock:
                    fake.fetched.append(self.path)
                self.send(*((file or (lambda _: None))(self.path) or (200, fake.files.get(self.path, b""))))

            def send(self, code, data, number=0):
                self.send_response(code)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.host = f"http://127.0.0.1:{self._server.server_port}"
        self.base_url = f"{self.host}/v1"

    def images(self, body):
        many = json.loads(body).get("n", 1) if body.startswith(b"{") else 1
        made = [picture(body + bytes([n])) if body.startswith(b"{") else picture(bytes([n])) for n in range(many)]
        if not self.urls:
            return {"data": [{"b64_json": base64.b64encode(one).decode()} for one in made]}
        names = [f"/files/{hashlib.sha256(one).hexdigest()[:8]}.png" for one in made]
        self.files |= dict(zip(names, made, strict=True))
        return {"data": [{"url": f"{self.host}{name}"} for name in names]}

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
