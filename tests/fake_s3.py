"""A fake of object storage that remembers what it was asked."""

import re
from collections import Counter
from contextlib import contextmanager
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.local_site import site

#: The environment of a program that may read and write the bucket.
KEYS = {"AWS_ACCESS_KEY_ID": "somebody", "AWS_MAX_ATTEMPTS": "1"}
KEYS |= {"AWS_SECRET_ACCESS_KEY": "a-key-of-the-bucket"}
KEYS |= {"AWS_EC2_METADATA_DISABLED": "true"}
STORED = {"Last-Modified": "Mon, 02 Nov 2026 10:00:00 GMT", "ETag": '"0"'}


class FakeS3:
    """A bucket of `objects` by key; `fails(method, key)` may refuse a request."""

    def __init__(self, bucket="bucket", fails=lambda method, key: False):
        self.bucket, self.fails = bucket, fails
        self.objects, self.parts, self.requests = {}, {}, []
        self.sent_bytes = 0

    @contextmanager
    def serving(self):
        with site(self._answer) as host:
            yield f"s3://{self.bucket}/run?endpoint_override={host}&scheme=http&region=here"

    def puts(self, suffix):
        """How often each object with this suffix was put."""
        keys = [key for method, key, _ in self.requests if method == "PUT"]
        return Counter(key for key in keys if key.endswith(suffix))

    def _answer(self, request):
        status, headers, body = self._answered(request, request.command)
        self.sent_bytes += len(body)
        return status, headers, body

    def _answered(self, request, method):
        parts = urlsplit(request.path)
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        key = unquote(parts.path).removeprefix(f"/{self.bucket}").strip("/")
        self.requests.append((method, key, query))
        if parts.path.strip("/").partition("/")[0] != self.bucket:
            return 404, {}, _error("NoSuchBucket")
        if self.fails(method, key):
            return 403, {}, _error("AccessDenied")
        if method == "GET" and not key:
            return self._list(query)
        handle = getattr(self, f"_{method.lower()}")
        return handle(key, request.body, request.headers, query)

    def _put(self, key, body, headers, query):
        if "aws-chunked" in headers.get("Content-Encoding", ""):
            body = _unchunked(body)
        if "uploadId" in query:
            self.parts.setdefault(key, {})[int(query["partNumber"])] = body
        else:
            self.objects[key] = body
        return 200, {"ETag": '"0"'}, b""

    def _post(self, key, body, headers, query):
        if "uploads" in query:
            inner = f"<Key>{key}</Key><UploadId>1</UploadId>"
            return 200, {}, _result("InitiateMultipartUploadResult", inner)
        if "uploadId" in query:
            parts = sorted(self.parts.pop(key, {}).items())
            self.objects[key] = b"".join(part for _, part in parts)
            inner = f"<Key>{key}</Key><ETag>0</ETag>"
            return 200, {}, _result("CompleteMultipartUploadResult", inner)
        for name in re.findall(r"<Key>(.*?)</Key>", body.decode()):
            self.objects.pop(name, None)
        return 200, {}, _result("DeleteResult", "")

    def _head(self, key, body, headers, query):
        if not key:
            return 200, {}, b""
        if key not in self.objects:
            return 404, {}, b""
        return 200, {**STORED, "Content-Length": len(self.objects[key])}, b""

    def _get(self, key, body, headers, query):
        if key not in self.objects:
            return 404, {}, _error("NoSuchKey")
        content = self.objects[key]
        if asked := re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("Range", "")):
            first, last = int(asked[1]), min(int(asked[2]), len(content) - 1)
            place = f"bytes {first}-{last}/{len(content)}"
            part = content[first : last + 1]
            return 206, {**STORED, "Content-Range": place}, part
        return 200, STORED, content

    def _delete(self, key, body, headers, query):
        self.objects.pop(key, None)
        return 204, {}, b""

    def _list(self, query):
        prefix, found, folders = query.get("prefix", ""), [], {}
        time = "<LastModified>2026-11-02T10:00:00.000Z</LastModified>"
        for key in sorted(key for key in self.objects if key.startswith(prefix)):
            folder, slash, _ = key.removeprefix(prefix).partition("/")
            if query.get("delimiter") and slash:
                name = f"<Prefix>{escape(f'{prefix}{folder}/')}</Prefix>"
                folders[folder] = f"<CommonPrefixes>{name}</CommonPrefixes>"
            else:
                size = f"<Size>{len(self.objects[key])}</Size>"
                inner = f"<Key>{escape(key)}</Key>{size}{time}"
                found.append(f"<Contents>{inner}</Contents>")
        entries = [*found, *folders.values()]
        count = f"<KeyCount>{len(entries)}</KeyCount>"
        inner = f"{count}<IsTruncated>false</IsTruncated>{''.join(entries)}"
        return 200, {}, _result("ListBucketResult", inner)


def _result(name, inner):
    space = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
    return f'<?xml version="1.0"?><{name} {space}>{inner}</{name}>'.encode()


def _error(code):
    inner = f"<Code>{code}</Code><Message>no</Message>"
    return f'<?xml version="1.0"?><Error>{inner}</Error>'.encode()


def _unchunked(body):
    content = b""
    while body:
        head, _, body = body.partition(b"\r\n")
        size = int(head.partition(b";")[0], 16)
        if not size:
            break
        content, body = content + body[:size], body[size + 2 :]
    return content
