"""Clients of trainers, written after their wire formats and how they try again."""

import base64
import io
import json

import PIL.Image
import requests


def jpeg(image):
    """The JPEG of quality 75 that trainers make of an array or picture."""
    file = io.BytesIO()
    PIL.Image.open(io.BytesIO(image)).convert("RGB").save(file, format="JPEG")
    return file.getvalue()


def encoded(image):
    return base64.b64encode(image).decode()


class FlowFactory:
    """Tries an HTTP error three times at once, and stops with what `error` says; 60 s pointwise."""

    def __init__(self, url, timeout=60.0):
        self.url, self.timeout, self.tries = url, timeout, 0
        self.session = requests.Session()

    def is_healthy(self):
        return self.session.get(f"{self.url}/health", timeout=5.0).ok

    def rewards(self, prompts, images, conditions=None):
        shown = [list(map(encoded, several)) for several in conditions or ()]
        payload = {"prompt": prompts, "image": list(map(encoded, images))}
        payload |= {"video": None, "condition_images": shown or None}
        payload |= {"condition_videos": None, "kwargs": None}
        sent = {"json": payload, "timeout": self.timeout}
        for attempt in range(3):
            self.tries += 1
            try:
                response = self.session.post(f"{self.url}/compute", **sent)
                response.raise_for_status()
                answer = response.json()
            except requests.RequestException as error:
                if attempt == 2:
                    failed = f"Failed to connect to {self.url}: {error}"
                    raise RuntimeError(failed) from None
                continue
            if answer.get("error"):
                raise RuntimeError(f"Server error: {answer['error']}")
            return answer["rewards"]
        raise AssertionError


class UniRL:
    """Raises a 4xx but 429 at once, tries others three times, fails at any failed sample."""

    def __init__(self, url, names):
        self.url, self.names, self.session = url, names, requests.Session()

    def is_available(self):
        response = self.session.get(f"{self.url}/health", timeout=5.0)
        if response.status_code != 200:
            return False
        served = response.json()["rewards"]
        if missing := [name for name in self.names if name not in served]:
            raise ValueError(f"not served: {missing}")
        return True

    def request(self, number, prompt, images):
        shown = [{"text": prompt, "image_b64": encoded(image)} for image in images]
        about = {"history": shown, "required_rewards": self.names, "metadata": None}
        about |= {"request_id": f"r{number}", "sample_id": f"s{number}"}
        about |= {"group_id": None, "source_rank": 0, "policy_version": None}
        return {**about, "idempotency_key": f"k{number}"}

    def score(self, rows):
        """The response to (prompt, output) or (prompt, source, output) rows."""
        wire = [
            self.request(n, prompt, shown) for n, (prompt, *shown) in enumerate(rows)
        ]
        sent = {"json": {"protocol_version": "1", "requests": wire}, "timeout": 300}
        for attempt in range(3):
            try:
                response = self.session.post(f"{self.url}/score", **sent)
                response.raise_for_status()
                return response.json()
            except requests.RequestException as error:
                status = error.response.status_code if error.response is not None else 0
                if (400 <= status < 500 and status != 429) or attempt == 2:
                    raise RuntimeError(f"after {attempt + 1} tries: {error}") from None
        raise AssertionError

    def rewards(self, rows):
        """The first number of the first reward of each; RuntimeError where a sample has none."""
        answer = self.score(rows)
        for found, errors in zip(answer["results"], answer["errors"], strict=True):
            absent = [name for name in self.names if name not in found]
            if absent:
                told = [f"{name}: {errors.get(name, 'missing')}" for name in absent]
                raise RuntimeError(
                    f"Reward computation flagged samples as failure: {told}"
                )
        first = self.names[0]
        return [next(iter(found[first].values())) for found in answer["results"]]


def rows_of(path):
    """The rows of a samples file, with the bytes of their images in place of paths."""
    for sample in map(json.loads, path.read_text().splitlines()):
        files = {role: path.parent / name for role, name in sample["images"].items()}
        images = {role: encoded(file.read_bytes()) for role, file in files.items()}
        yield {**sample, "images": images}
