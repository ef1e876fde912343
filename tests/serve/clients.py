"""Clients of trainers, written anew after their wire formats and how they try again; not their
code.
"""

import base64
import io
import json

import PIL.Image
import requests


def jpeg(image, **options):
    """The JPEG that trainers make of an array or picture, of quality 75 unless they say
    otherwise.
    """
    file = io.BytesIO()
    PIL.Image.open(io.BytesIO(image)).convert("RGB").save(
        file, format="JPEG", **options
    )
    return file.getvalue()


def encoded(image):
    return base64.b64encode(image).decode()


class FlowFactory:
    """Tries an HTTP error three times at once, and stops with what `error` says; 60 s pointwise."""

    def __init__(self, url, timeout=60.0):
        self.url, self.timeout, self.session, self.tries = (
            url,
            timeout,
            requests.Session(),
            0,
        )

    def is_healthy(self):
        return self.session.get(f"{self.url}/health", timeout=5.0).ok

    def rewards(self, prompts, images, conditions=None):
        payload = {
            "prompt": prompts,
            "image": [encoded(image) for image in images],
            "video": None,
            "condition_images": [
                [encoded(image) for image in several] for several in conditions
            ]
            if conditions
            else None,
            "condition_videos": None,
            "kwargs": None,
        }
        for attempt in range(3):
            self.tries += 1
            try:
                response = self.session.post(
                    f"{self.url}/compute", json=payload, timeout=self.timeout
                )
                response.raise_for_status()
                answer = response.json()
            except requests.RequestException as error:
                if attempt == 2:
                    raise RuntimeError(
                        f"Failed to connect to {self.url}: {error}"
                    ) from None
                continue
            if answer.get("error"):
                raise RuntimeError(f"Server error: {answer['error']}")
            return answer["rewards"]
        raise AssertionError


class UniRL:
    """Raises a 4xx other than 429 at once, tries others three times, and fails at any sample
    that failed; 300 s.
    """

    def __init__(self, url, names):
        self.url, self.names, self.session = url, names, requests.Session()

    def is_available(self):
        response = self.session.get(f"{self.url}/health", timeout=5.0)
        if response.status_code != 200:
            return False
        missing = [
            name for name in self.names if name not in response.json()["rewards"]
        ]
        if missing:
            raise ValueError(f"not served: {missing}")
        return True

    def score(self, rows):
        """The response to (prompt, output) or (prompt, source, output) rows."""
        wire = [
            {
                "history": [
                    {"text": prompt, "image_b64": encoded(image)} for image in images
                ],
                "required_rewards": self.names,
                "metadata": None,
                "request_id": f"r{number}",
                "sample_id": f"s{number}",
                "group_id": None,
                "source_rank": 0,
                "policy_version": None,
                "idempotency_key": f"k{number}",
            }
            for number, (prompt, *images) in enumerate(rows)
        ]
        for attempt in range(3):
            try:
                response = self.session.post(
                    f"{self.url}/score",
                    json={"protocol_version": "1", "requests": wire},
                    timeout=300,
                )
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
        for by_name, errors in zip(answer["results"], answer["errors"], strict=True):
            failed = [
                f"{name}: {errors.get(name, 'missing')}"
                for name in self.names
                if name not in by_name
            ]
            if failed:
                raise RuntimeError(
                    f"Reward computation flagged samples as failure: {failed}"
                )
        return [
            next(iter(by_name[self.names[0]].values())) for by_name in answer["results"]
        ]


def rows_of(path):
    """The rows of a samples file, with the bytes of their images in place of paths."""
    for line in path.read_text().splitlines():
        sample = json.loads(line)
        files = {role: path.parent / name for role, name in sample["images"].items()}
        yield {
            **sample,
            "images": {
                role: encoded(file.read_bytes()) for role, file in files.items()
            },
        }
