"""Training steps. On a GPU, a step is recorded as a CUDA graph once for each shape of batch.

A step starts about a thousand small kernels. On an H100 this takes the CPU 22 ms, several times as
long as the GPU needs to execute them. A graph starts all of them at once.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from inference.demo_model.model import Qwen3

Tensors = tuple[Tensor, Tensor, Tensor]  # inputs, labels, weights of the labels in the loss


class StepRunner:
    """Computes gradients and updates the model's weights.

    The first step of each shape is never recorded: it compiles the model's code and creates the
    state of the optimisers, which must exist before a recording. If `records` is False, as on a
    CPU, no step is recorded.
    """

    def __init__(
        self, model: Qwen3, optimisers: Sequence[torch.optim.Optimizer], *, records: bool
    ) -> None:
        self._loss = torch.compile(model.loss, dynamic=False)
        self._optimisers = optimisers
        self._records = records
        self._device = next(model.parameters()).device
        self._seen_shapes: set[torch.Size] = set()
        self._recordings: dict[torch.Size, _Recording] = {}
        if records:
            _keep_rates_on_device(optimisers, self._device)
            _leave_default_stream()

    def run(self, batch: Tensors, rate_factor: float) -> Tensor:
        """Update the model's weights, and return the loss of the batch before the update.

        `rate_factor`: the learning rate as a share of its peak, from 0 to 1.
        """
        self._set_rates(rate_factor)
        shape = batch[0].shape
        if self._records and shape in self._seen_shapes:
            return self._replay(batch)
        self._seen_shapes.add(shape)
        return self.step(*(part.to(self._device, non_blocking=True) for part in batch))

    def step(self, inputs: Tensor, labels: Tensor, loss_weights: Tensor) -> Tensor:
        """Update the model's weights at the current learning rates.

        Return the loss before the update. The arguments must be on the model's device.
        """
        loss = self._loss(inputs, labels, loss_weights)
        torch.autograd.backward(loss)
        for optimiser in self._optimisers:
            optimiser.step()
            optimiser.zero_grad()
        return loss.detach()

    def _replay(self, batch: Tensors) -> Tensor:
        shape = batch[0].shape
        if shape not in self._recordings:
            on_device = [part.to(self._device) for part in batch]
            self._recordings[shape] = _Recording(self.step, on_device)
        return self._recordings[shape].replay(batch)

    def _set_rates(self, factor: float) -> None:
        for optimiser in self._optimisers:
            for group in optimiser.param_groups:
                rate = group["peak_rate"] * factor
                if self._records:
                    group["lr"].fill_(rate)
                else:
                    group["lr"] = rate


class _Recording:
    """The recorded step of one shape. A replay reads the batch from the same memory each time."""

    def __init__(self, step: Callable[..., Tensor], batch: Sequence[Tensor]) -> None:
        self._batch = batch
        self._graph = torch.cuda.CUDAGraph()
        # The thread that pins batches may call CUDA during the recording: "thread_local" allows it.
        with torch.cuda.graph(
            self._graph,
            stream=torch.cuda.current_stream(),
            capture_error_mode="thread_local",
        ):
            self._loss = step(*batch)

    def replay(self, batch: Tensors) -> Tensor:
        for target, part in zip(self._batch, batch, strict=True):
            target.copy_(part, non_blocking=True)
        self._graph.replay()
        return self._loss.clone()


def _keep_rates_on_device(
    optimisers: Sequence[torch.optim.Optimizer], device: torch.device
) -> None:
    """Replace each learning rate by a tensor on the device, so that replays read its new value."""
    for optimiser in optimisers:
        for group in optimiser.param_groups:
            group["lr"] = torch.tensor(float(group["lr"]), device=device)


def _leave_default_stream() -> None:
    """Use another CUDA stream from now on, because the default stream cannot be recorded."""
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]  # of torch
    stream.wait_stream(torch.cuda.current_stream())
    torch.cuda.set_stream(stream)
