"""The optimisers: Muon for the matrices of the layers, AdamW for the embedding and the norms.

Muon (Keller Jordan and others, 2024) sets the singular values of the momentum to about one, by a
Newton-Schulz iteration. Matrices of the same shape are processed as one batch.
"""

import torch
from torch import Tensor, nn

MUON_RATE = 0.01  # measured with batches of 8,192 tokens: 0.02 was worse
ADAM_RATE = 1.5e-3
MOMENTUM = 0.95
# Coefficients and number of steps of Muon's reference implementation.
NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
NEWTON_SCHULZ_STEPS = 5


class Muon(torch.optim.Optimizer):
    def __init__(self, parameters: list[nn.Parameter], rate: float) -> None:
        """`parameters` are matrices; `rate` is the learning rate."""
        super().__init__(_groups_by_shape(parameters), {"lr": rate})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # never a closure
        for group in self.param_groups:
            parameters: list[nn.Parameter] = group["params"]
            gradients = torch.stack([_gradient_of(p) for p in parameters])
            state = self.state[parameters[0]]
            momentum = state.setdefault("momentum", torch.zeros_like(gradients))
            momentum.lerp_(gradients, 1 - MOMENTUM)
            updates = orthogonalise(gradients.lerp(momentum, MOMENTUM))  # Nesterov's momentum
            rows, columns = updates.shape[-2:]
            # Matrices with more rows than columns get a higher rate. The rate is a tensor if the
            # step is recorded as a CUDA graph (see `training/steps.py`), so it cannot be the
            # `alpha` of `sub_`.
            updates *= group["lr"] * max(1.0, rows / columns) ** 0.5
            for parameter, update in zip(parameters, updates, strict=True):
                parameter.sub_(update)


def orthogonalise(matrices: Tensor) -> Tensor:
    """Set the singular values of each matrix to about one, and keep its singular vectors.

    The shape of `matrices` is (batch, rows, columns).
    """
    a, b, c = NEWTON_SCHULZ
    is_tall = matrices.shape[-2] > matrices.shape[-1]
    x = (matrices.mT if is_tall else matrices).bfloat16()
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(NEWTON_SCHULZ_STEPS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    result: Tensor = (x.mT if is_tall else x).to(matrices.dtype)
    return result


def make_optimisers(model: nn.Module) -> tuple[torch.optim.Optimizer, torch.optim.Optimizer]:
    """Return Muon and AdamW. Each parameter group stores its highest rate as `peak_rate`."""
    matrices: list[nn.Parameter] = []
    other_parameters: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        is_matrix = parameter.ndim == 2 and "embed_tokens" not in name
        (matrices if is_matrix else other_parameters).append(parameter)
    adam = torch.optim.AdamW(
        other_parameters,
        lr=ADAM_RATE,
        betas=(0.9, 0.95),
        weight_decay=0.0,
        capturable=other_parameters[0].is_cuda,  # so that a CUDA graph can record its step
    )
    for optimiser in (muon := Muon(matrices, MUON_RATE), adam):
        for group in optimiser.param_groups:
            group["peak_rate"] = group["lr"]
    return muon, adam


def _groups_by_shape(parameters: list[nn.Parameter]) -> list[dict[str, object]]:
    groups: dict[tuple[int, ...], list[nn.Parameter]] = {}
    for parameter in parameters:
        groups.setdefault(tuple(parameter.shape), []).append(parameter)
    return [{"params": group} for group in groups.values()]


def _gradient_of(parameter: nn.Parameter) -> Tensor:
    if parameter.grad is None:
        raise ValueError("A matrix has no gradient, because the loss does not depend on it.")
    return parameter.grad
