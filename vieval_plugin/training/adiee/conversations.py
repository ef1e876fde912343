"""Turn labelled edits into conversations of the judge, and these into tensors."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import PIL.Image

from vieval_plugin.backends.metrics.networks.value_head import join_side_by_side
from vieval_plugin.backends.weights import library
from vieval_plugin.images import decode
from vieval_plugin.judges.adiee.question import (
    ANSWERS,
    QUESTIONS,
    Form,
    Images,
    Reading,
    answer_text,
    question_text,
)
from vieval_plugin.judges.protocol import Image
from vieval_plugin.prompts.pack import Pack
from vieval_plugin.text.errors import VievalError
from vieval_plugin.training.adiee.labels import Edits, LabelledEdit
from vieval_plugin.training.adiee.network import TOKEN, positions

_IGNORED = -100


@dataclass(frozen=True)
class Batch:
    """Tensors of edits."""

    #: Inputs of the model.
    inputs: Any
    #: Positions that the head reads, shape (rows,).
    at: Any
    #: Expected tokens, shape (rows, length).
    targets: Any
    #: Labels, shape (rows,).
    labels: Any

    def to(self, device: Any) -> Batch:
        return Batch(
            self.inputs.to(device),
            *(
                tensor.to(device)
                for tensor in (
                    self.at,
                    self.targets,
                    self.labels,
                )
            ),
        )


class Conversations:
    """Turn edits into batches: a question about both images, and an answer that ends in
    the token or in a number.
    """

    def __init__(
        self,
        processor: Any,
        wording: Pack,
        images: Images,
        with_token: bool,
    ) -> None:
        self._processor = processor
        self._wording = wording
        self._images = images
        self._with_token = with_token
        self._tokenizer = processor.tokenizer
        self.questions = [key for key in wording.questions if key.startswith(QUESTIONS)]
        self.answers = [key for key in wording.questions if key.startswith(ANSWERS)]
        turns = [
            {"role": role, "content": [{"type": "text", "text": text}]}
            for role, text in (("user", "?"), ("assistant", "vieval"))
        ]
        # text that the chat template adds after an assistant's turn
        rendered = processor.apply_chat_template(turns, tokenize=False)
        self._end = str(rendered.rpartition("vieval")[2])
        # how a tokenizer pads is a state of it, and the next step is prepared while held-out edits
        # are measured
        self._one_at_a_time = threading.Lock()

    def random_form(self, rng: random.Random) -> Form:
        """Choose a question and an answer sentence at random, all equally likely."""
        return Form(rng.choice(self.questions), rng.choice(self.answers))

    def batch(self, edits: Edits, forms: Sequence[Form]) -> Batch:
        """Build the tensors of edits, each asked in its form.

        Raises:
            VievalError: an image cannot be read, or an answer lacks its token.
        """
        with self._one_at_a_time:
            return self._batch(edits, forms)

    def _batch(self, edits: Edits, forms: Sequence[Form]) -> Batch:
        torch = library("torch")
        pairs = [*map(self._prompt_and_answer, edits, forms)]
        texts = [prompt + answer for prompt, answer in pairs]
        bos = self._tokenizer.bos_token
        inputs = self._processor(
            text=texts,
            images=[self._pictures(edit) for edit in edits],
            padding=True,
            return_tensors="pt",
            add_special_tokens=not (bos and texts[0].startswith(bos)),
        )
        tokens = inputs["input_ids"]
        ends = inputs["attention_mask"].sum(1)
        targets = torch.full_like(tokens, _IGNORED)
        for row, (prompt, answer) in enumerate(pairs):
            end = int(ends[row])
            begin = end - self._answer_length(prompt, answer)
            targets[row, begin:end] = tokens[row, begin:end]
        at = torch.zeros(len(edits), dtype=torch.long)
        if self._with_token:
            at = positions(tokens, self._tokenizer.convert_tokens_to_ids(TOKEN))
        labels = torch.tensor([edit.label for edit in edits], dtype=torch.float32)
        return Batch(inputs, at, targets, labels)

    def _prompt_and_answer(self, edit: LabelledEdit, form: Form) -> tuple[str, str]:
        """Return the text up to the assistant's turn, and that turn."""
        reading: Reading = "token" if self._with_token else "sentence"
        wording = self._wording
        question = question_text(
            edit.instruction,
            form,
            wording,
            self._images,
            reading,
        )
        placeholders = [{"type": "image"}] * (2 if self._images == "two" else 1)
        content = [*placeholders, {"type": "text", "text": question}]
        turn = {"role": "user", "content": content}
        prompt = self._processor.apply_chat_template(
            [turn], tokenize=False, add_generation_prompt=True
        )
        score = TOKEN if self._with_token else str(round(10 * edit.label))
        return str(prompt), answer_text(form.answer, score, wording) + self._end

    def _pictures(self, edit: LabelledEdit) -> list[PIL.Image.Image]:
        pictures = [decode(Image(path)) for path in (edit.source, edit.output)]
        return pictures if self._images == "two" else [join_side_by_side(pictures)]

    def _answer_length(self, prompt: str, answer: str) -> int:
        texts = (prompt, prompt + answer)
        prompt_tokens, all_tokens = (
            self._tokenizer(text, add_special_tokens=False).input_ids for text in texts
        )
        if all_tokens[: len(prompt_tokens)] != prompt_tokens:
            raise VievalError(
                "the tokenizer merges the end of a question with its answer, so they "
                "cannot be separated; choose another --base"
            )
        return len(all_tokens) - len(prompt_tokens)
