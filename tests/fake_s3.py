"""A fake of object storage that speaks as much of S3 as is needed, and remembers what it was
asked.
"""

import re
from contextlib import contextmanager
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.local_site import site

KEYS = {
    "AWS_ACCESS_KEY_ID": "somebody",
    "AWS_SECRET_ACCESS_KEY": "a-key-of-the-bucket",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_MAX_ATTEMPTS": "1",
}
"""What a program finds in its environment that may read and write the bucket."""
MODIFIED = "Mon, 02 Nov 2026 10:00:00 GMT"


class FakeS3:
    """A bucket: `objects` by key, `requests` as method, key and query, and `sent_bytes` of answers.

    `fails(method, key)` may refuse a request.
    """

    def __init__(self, bucket="bucket", fails=lambda method, key: False):
        self.bucket, self.objects, self.requests, self.parts, self.fails = (
            bucket,
            {},
            [],
            {},
            fails,
        )
        self.sent_bytes = 0

    @contextmanager
    def serving(self):
        with site(self._answer) as host:
            yield f"s3://{self.bucket}/run?endpoint_override={host}&scheme=http&region=here"

    def puts(self, suffix):
        """How often each object with this suffix was put."""
        keys = [
            key
            for method, key, _ in self.requests
            if method == "PUT" and key.endswith(suffix)
        ]
        return {key: keys.count(key) for key in keys}

    def _answer(self, request):
        status, headers, body = self._answered(request, request.command)
        self.sent_bytes += len(body)
        return status, headers, body

    def _answered(self, request, method):
        parts = urlsplit(request.path)
        query = {
            name: values[0]
            for name, values in parse_qs(parts.query, keep_blank_values=True).items()
        }
        key = unquote(parts.path).removeprefix(f"/{self.bucket}").strip("/")
        self.requests.append((method, key, query))
        if parts.path.strip("/").partition("/")[0] != self.bucket:
            return 404, {}, _error("NoSuchBucket")
        if self.fails(method, key):
            return 403, {}, _error("AccessDenied")
        if method == "GET" and not key:
            return self._list(query)
        return getattr(self, f"_{method.lower()}")(
            key, request.body, request.headers, query
        )

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
            return (
                200,
                {},
                _result(
                    "InitiateMultipartUploadResult",
                    f"<Key>{key}</Key><UploadId>1</UploadId>",
                ),
            )
        if "uploadId" in query:
            self.objects[key] = b"".join(
                part for _, part in sorted(self.parts.pop(key, {}).items())
            )
            return (
                200,
                {},
                _result(
                    "CompleteMultipartUploadResult", f"<Key>{key}</Key><ETag>0</ETag>"
                ),
            )
        for name in re.findall(r"<Key>(.*?)</Key>", body.decode()):
            self.objects.pop(name, None)
        return 200, {}, _result("DeleteResult", "")

    def _head(self, key, body, headers, query):
        if not key:
            return 200, {}, b""
        if key not in self.objects:
            return 404, {}, b""
        return (
            200,
            {
                "Last-Modified": MODIFIED,
                "ETag": '"0"',
                "Content-Length": len(self.objects[key]),
            },
            b"",
        )

    def _get(self, key, body, headers, query):
        if key not in self.objects:
            return 404, {}, _error("NoSuchKey")
        content, common = self.objects[key], {"Last-Modified": MODIFIED, "ETag": '"0"'}
        if asked := re.fullmatch(r"bytes=(\d+)-(\d+)", headers.get("Range", "")):
            first, last = int(asked[1]), min(int(asked[2]), len(content) - 1)
            return (
                206,
                {**common, "Content-Range": f"bytes {first}-{last}/{len(content)}"},
                content[first : last + 1],
            )
        return 200, common, content

    def _delete(self, key, body, headers, query):
        self.objects.pop(key, None)
        return 204, {}, b""

    def _list(self, query):
        prefix, found = query.get("prefix", ""), []
        folders = set()
        for key in sorted(self.objects):
            if key.startswith(prefix):
                rest = key[len(prefix) :]
                if query.get("delimiter") and "/" in rest:
                    folders.add(prefix + rest.split("/")[0] + "/")
                else:
                    found.append(key)
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.objects[key])}</Size><LastModified>2026-11-02T10:00:00.000Z</LastModified></Contents>"
            for key in found
        )
        below = "".join(
            f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>"
            for name in sorted(folders)
        )
        inner = f"<KeyCount>{len(found) + len(folders)}</KeyCount><IsTruncated>false</IsTruncated>{contents}{below}"
        return 200, {}, _result("ListBucketResult", inner)


def _result(name, inner):
    return (
        f'<?xml version="1.0"?><{name} '
        f'xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{inner}</{name}>'
    ).encode()


def _error(code):
    return f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>no</Message></Error>'.encode()


def _unchunked(body):
    content = b""
    while body:
        head, _, body = body.partition(b"\r\n")
        size = int(head.partition(b";")[0], 16)
        if not size:
            break
        content, body = content + body[:size], body[size + 2 :]
    return content
