"""A fake of an image API, whose pictures follow from the request alone."""

import base64
import hashlib
import json

from tests.local_site import answering
from tests.pictures import encoded, noise


def picture(seed: bytes) -> bytes:
    number = int.from_bytes(hashlib.sha256(seed).digest()[:4], "big")
    return encoded(noise(number, (32, 32)))


class FakeImageServer:
    """Answers `images/generations` and `images/edits`, with `urls` by addresses of files.

    `answer(path, body)` and `file(path)` may give other answers as (code, content).
    """

    def __init__(self, answer=None, urls=False, file=None):
        self.requests, self.files, self.fetched = [], {}, []
        self.answer, self.urls = answer or (lambda *_: None), urls
        self.file, self._site = file or (lambda _: None), answering(self._respond)

    def _respond(self, path, body, headers):
        if not body:
            self.fetched.append(path)
            code, data = self.file(path) or (200, self.files.get(path, b""))
            return code, {}, data
        self.requests.append((path, headers["Content-Type"], body))
        code, found = self.answer(path, body) or (200, self.images(body))
        return code, {}, json.dumps(found).encode()

    def images(self, body):
        many, seed = 1, b""
        if body.startswith(b"{"):
            many, seed = json.loads(body).get("n", 1), body
        made = [picture(seed + bytes([n])) for n in range(many)]
        if not self.urls:
            texts = [base64.b64encode(one).decode() for one in made]
            return {"data": [{"b64_json": text} for text in texts]}
        names = [f"/files/{hashlib.sha256(one).hexdigest()[:8]}.png" for one in made]
        self.files |= dict(zip(names, made, strict=True))
        return {"data": [{"url": f"{self.host}{name}"} for name in names]}

    def __enter__(self):
        self.host = f"http://{self._site.__enter__()}"
        self.base_url = f"{self.host}/v1"
        return self

    def __exit__(self, *error):
        self._site.__exit__(*error)
