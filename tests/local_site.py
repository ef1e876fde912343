"""A site of this process's own, over plain HTTP, whose every answer a function gives."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextmanager
def site(respond):
    """Yields a host that answers by `respond(request)`: a status, headers and a body.

    A request has its `command`, `path`, `headers` and `body`.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # an answer is two writes, the second of which would wait for 40 ms
        disable_nagle_algorithm = True

        def do_POST(self):
            self.body = self.read_body()
            status, headers, body = respond(self)
            self.send_response(status)
            for name, value in {"Content-Length": len(body), **headers}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST

        def read_body(self):
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length") or 0))
            content = b""
            while size := int(self.rfile.readline().partition(b";")[0], 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return content

        def log_message(self, *_): ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.handle_error = lambda *_: None  # of who hangs up
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def answering(answer):
    """A site that answers by `answer(path, body, headers)`."""
    return site(lambda request: answer(request.path, request.body, request.headers))
