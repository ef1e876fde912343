"""LPIPS through torchmetrics, its trunk AlexNet given as a file and its linear weights those
that torchmetrics brings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vieval_plugin.backends.metrics.network_metrics import (
    NetworkInputs,
    NetworkMetric,
    Picture,
)
from vieval_plugin.backends.metrics.pixel_metrics import pair, resizing, working_pixels
from vieval_plugin.backends.weights import (
    Origin,
    device,
    identity,
    library,
    state_dict,
    weights_name,
)
from vieval_plugin.text.errors import VievalError
from vieval_plugin.text.untrusted import path_of

# which of torchmetrics' slices each convolution of torchvision's AlexNet is in
_SLICES = {
    "0": "slice1",
    "3": "slice2",
    "6": "slice3",
    "8": "slice4",
    "10": "slice5",
}


@dataclass(frozen=True)
class PerceptualDistance:
    """The loaded network; called with images and references, tensors (3, height, width) of 0 to
    255, it gives distances.
    """

    #: Name in results.
    by: str
    #: Name of its weights, which no others have.
    identity: str
    #: Torchmetrics' network.
    network: Any
    device: Any

    def __call__(self, images: Sequence[Any], references: Sequence[Any]) -> Any:
        scaled = (
            library("torch").stack(list(batch)).to(self.device).float() / 255
            for batch in (images, references)
        )
        return self.network(*scaled, normalize=True).reshape(-1)


def load(origin: Origin) -> PerceptualDistance:
    """LPIPS with AlexNet.

    Raises:
        VievalError: no file of AlexNet's weights is named or there, or it holds something else.
    """
    if not origin.model:
        ways = "name=FILE in --model_args, --scorer FILE or scorers.NAME.model"
        address = "https://download.pytorch.org/models/alexnet-owt-7be5be79.pth"
        raise VievalError(
            "this metric requires the weights of torchvision's AlexNet; download "
            f"{address} and pass the file ({ways})"
        )
    if origin.revision:
        raise VievalError(
            f"{origin.model} is a file; remove revision {origin.revision}"
        )
    path = path_of(origin.model)
    weights = state_dict(path)
    renamed = {}
    for layer, part in _SLICES.items():
        for kind in ("weight", "bias"):
            tensor = weights.get(f"features.{layer}.{kind}")
            renamed[f"{part}.{layer}.{kind}"] = tensor
    # with its linear weights and a trunk that is still random; the public function and class
    # download the trunk
    lpips = library("torchmetrics.functional.image.lpips")
    library("torchvision")
    network = lpips._LPIPS(net="alex", pnet_rand=True)
    shapes = {name: getattr(tensor, "shape", None) for name, tensor in renamed.items()}
    state = network.net.state_dict()
    if shapes != {name: tensor.shape for name, tensor in state.items()}:
        raise VievalError(
            f"{path} has the wrong architecture; use the weights of torchvision's "
            "AlexNet"
        )
    network.net.load_state_dict(renamed)
    network = network.float().to(device(origin.device)).eval()
    digest = identity(network)
    return PerceptualDistance(
        weights_name(origin, network, digest),
        digest,
        network,
        next(network.parameters()).device,
    )


def show(
    network: PerceptualDistance, images: Mapping[str, Picture], texts: Mapping[str, str]
) -> NetworkInputs:
    """An image and its reference at the image's size, tensors (3, height, width) of 0 to 255.

    An image of more than 2048 pixels at its longer side is reduced to that, as for metrics of
    pixels.
    """
    pixel_pair = pair({role: working_pixels(image) for role, image in images.items()})
    torch = library("torch")
    tensors = (
        torch.from_numpy(np.array(pixels)).permute(2, 0, 1) for pixels in pixel_pair
    )
    findings = resizing(
        images["image"].size,
        images["reference"].size,
    )
    return NetworkInputs(
        dict(zip(("image", "reference"), tensors, strict=True)), findings
    )


def lpips(network: PerceptualDistance, batch: Mapping[str, Sequence[Any]]) -> Any:
    """The distance of AlexNet's features of `image` and `reference` are, from 0; a distance: the
    less, the more alike.

    Zhang et al., The unreasonable effectiveness of deep features as a perceptual metric (CVPR
    2018), version 0.1.
    """
    return network(batch["image"], batch["reference"])


METRIC = NetworkMetric(
    "lpips",
    load,
    "",
    show,
    lpips,
)
