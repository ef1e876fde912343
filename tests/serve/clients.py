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

    def __init__(self, url, timeout=300.0, names=("r",)):
        self.url = url
        self.timeout = timeout
        self.names = list(names)
        self.tries = 0
        self.session = requests.Session()

    def is_healthy(self):
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

    def score(self, prompts, images, conditions=None):
        """The response to prompts, outputs and, of edits, their sources."""
        rows = zip(prompts, conditions or [[]] * len(prompts), images, strict=True)
        wire = [
            self.request(number, prompt, [*sources, image])
            for number, (prompt, sources, image) in enumerate(rows)
        ]
        document = {"protocol_version": "1", "requests": wire}
        for attempt in range(3):
            self.tries += 1
            try:
                sent = {"json": document, "timeout": self.timeout}
                response = self.session.post(f"{self.url}/score", **sent)
                response.raise_for_status()
                return response.json()
            except requests.RequestException as error:
                status = error.response.status_code if error.response is not None else 0
                if (400 <= status < 500 and status != 429) or attempt == 2:
                    raise RuntimeError(f"after {attempt + 1} tries: {error}") from None
        raise AssertionError

    def rewards(self, prompts, images, conditions=None):
        """The first number of the first reward of each; RuntimeError where a sample has none."""
        answer = self.score(prompts, images, conditions)
        rows = zip(answer["results"], answer["errors"], strict=True)
        for number, (found, errors) in enumerate(rows):
            for name in self.names:
                if name not in found:
                    told = f"{name}: {errors.get(name, 'missing')}"
                    raise RuntimeError(f"failure: {told} (sample {number})")
        first = self.names[0]
        return [next(iter(found[first].values())) for found in answer["results"]]


class JudgeV1:
    """VIEval's own protocol, of which a failed sample ends the training too."""

    def __init__(self, url, timeout=300.0):
        self.url, self.timeout, self.tries = url, timeout, 0

    def is_healthy(self):
        return requests.get(f"{self.url}/health", timeout=5.0).ok

    def rewards(self, prompts, images, conditions=None):
        self.tries += 1
        rows = zip(prompts, conditions or [[]] * len(prompts), images, strict=True)
        samples = []
        for number, (prompt, sources, image) in enumerate(rows):
            named = {"source": encoded(sources[0])} if sources else {}
            text = "instruction" if sources else "prompt"
            shown = {**named, "output": encoded(image)}
            sample = {"uid": f"{number}", "images": shown, "texts": {text: prompt}}
            samples.append(sample)
        sent = {"json": {"samples": samples}, "timeout": self.timeout}
        answer = requests.post(f"{self.url}/v1/judge", **sent).json()
        for number in answer["failed"]:
            failed = answer["verdicts"][number]
            told = f"{failed['status']}: {failed['reason']} (sample {number})"
            raise RuntimeError(told)
        for number, verdict in enumerate(answer["verdicts"]):
            assert verdict["uid"] == f"{number}"
            assert verdict["value"] == verdict["verdicts"][0]["scores"]["O"]
        return [verdict["value"] for verdict in answer["verdicts"]]


def rows_of(path):
    """The rows of a samples file, with the bytes of their images in place of paths."""
    for sample in map(json.loads, path.read_text().splitlines()):
        files = {role: path.parent / name for role, name in sample["images"].items()}
        images = {role: encoded(file.read_bytes()) for role, file in files.items()}
        yield {**sample, "images": images}
