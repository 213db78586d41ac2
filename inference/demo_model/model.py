"""A small Qwen3 decoder for training. It computes the same as transformers' `Qwen3ForCausalLM`."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True, slots=True)
class ModelDimensions:
    """The sizes of the model, and the other values that its configuration must name."""

    vocabulary_tokens: int = 4096
    hidden: int = 384  # values that represent a token between two layers
    num_layers: int = 8
    num_heads: int = 6  # of queries
    num_kv_heads: int = 2  # of keys and values
    head_dim: int = 64
    feed_forward: int = 1024  # values between the matrices of a feed-forward part
    rope_theta: float = 100_000.0  # base of the rotary angles
    norm_epsilon: float = 1e-6
    max_positions: int = 8192  # tokens of prompt and completion


class Attention(nn.Module):
    def __init__(self, dimensions: ModelDimensions) -> None:
        super().__init__()
        self.dimensions = dimensions
        query_size = dimensions.num_heads * dimensions.head_dim
        kv_size = dimensions.num_kv_heads * dimensions.head_dim
        self.q_proj = nn.Linear(dimensions.hidden, query_size, bias=False)
        self.k_proj = nn.Linear(dimensions.hidden, kv_size, bias=False)
        self.v_proj = nn.Linear(dimensions.hidden, kv_size, bias=False)
        self.o_proj = nn.Linear(query_size, dimensions.hidden, bias=False)
        self.q_norm = nn.RMSNorm(dimensions.head_dim, dimensions.norm_epsilon)
        self.k_norm = nn.RMSNorm(dimensions.head_dim, dimensions.norm_epsilon)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Return a tensor of the shape of `x`: (rows, tokens, hidden)."""
        q = _rotate_embedding(self.q_norm(self._split_heads(self.q_proj(x))), cos, sin)
        k = _rotate_embedding(self.k_norm(self._split_heads(self.k_proj(x))), cos, sin)
        v = self._split_heads(self.v_proj(x))
        # Grouped-query attention: several query heads share one head of keys and values.
        queries_per_kv = self.dimensions.num_heads // self.dimensions.num_kv_heads
        k = k.repeat_interleave(queries_per_kv, dim=1)
        v = v.repeat_interleave(queries_per_kv, dim=1)
        # The rotation by float32 angles makes `q` and `k` float32; `v` may be bfloat16 (autocast).
        attended = functional.scaled_dot_product_attention(
            q.to(v.dtype), k.to(v.dtype), v, is_causal=True
        )
        out: Tensor = self.o_proj(attended.transpose(1, 2).flatten(2))
        return out

    def _split_heads(self, x: Tensor) -> Tensor:
        """Reshape (rows, tokens, heads * head_dim) to (rows, heads, tokens, head_dim)."""
        return x.view(*x.shape[:2], -1, self.dimensions.head_dim).transpose(1, 2)


class FeedForward(nn.Module):
    def __init__(self, dimensions: ModelDimensions) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(dimensions.hidden, dimensions.feed_forward, bias=False)
        self.up_proj = nn.Linear(dimensions.hidden, dimensions.feed_forward, bias=False)
        self.down_proj = nn.Linear(dimensions.feed_forward, dimensions.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


class DecoderLayer(nn.Module):
    def __init__(self, dimensions: ModelDimensions) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(dimensions.hidden, dimensions.norm_epsilon)
        self.self_attn = Attention(dimensions)
        self.post_attention_layernorm = nn.RMSNorm(dimensions.hidden, dimensions.norm_epsilon)
        self.mlp = FeedForward(dimensions)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class Qwen3(nn.Module):
    """The decoder.

    Its parameters have the names that the exported file uses, without the prefix `model.`.
    """

    def __init__(self, dimensions: ModelDimensions) -> None:
        super().__init__()
        self.dimensions = dimensions
        self.embed_tokens = nn.Embedding(dimensions.vocabulary_tokens, dimensions.hidden)
        self.layers = nn.ModuleList(DecoderLayer(dimensions) for _ in range(dimensions.num_layers))
        self.norm = nn.RMSNorm(dimensions.hidden, dimensions.norm_epsilon)
        self._initialise_weights()

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the logits of each position's next token.

        The shape of `tokens` is (rows, tokens), that of the result (rows, tokens, vocabulary).
        """
        x = self.embed_tokens(tokens)
        cos, sin = compute_rotations(self.dimensions, tokens.shape[1], tokens.device)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return functional.linear(self.norm(x), self.embed_tokens.weight)

    def loss(self, inputs: Tensor, labels: Tensor, weights: Tensor) -> Tensor:
        """Return the weighted mean of the nats per label. All arguments are (rows, tokens)."""
        with torch.autocast(inputs.device.type, torch.bfloat16):
            logits = self(inputs).flatten(0, 1)
        nats = functional.cross_entropy(logits.float(), labels.flatten(), reduction="none")
        return (nats * weights.flatten()).sum() / weights.sum()

    def _initialise_weights(self) -> None:
        """Initialise the weights so that each untrained layer returns its input unchanged.

        For this, the output projections of its attention and its feed-forward part are zero.
        """
        nn.init.normal_(self.embed_tokens.weight, std=0.02)  # the default of Qwen3's configuration
        for name, parameter in self.layers.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight")):
                nn.init.zeros_(parameter)
            elif parameter.ndim == 2:
                nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)


def compute_rotations(
    dimensions: ModelDimensions, num_tokens: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Return cosine and sine of the rotary angles, each (tokens, head_dim)."""
    exponents = torch.arange(0, dimensions.head_dim, 2, device=device) / dimensions.head_dim
    positions = torch.arange(num_tokens, device=device)
    angles = torch.outer(positions, dimensions.rope_theta**-exponents)
    angle_pairs = torch.cat((angles, angles), dim=-1)
    return angle_pairs.cos(), angle_pairs.sin()


def _rotate_embedding(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Apply the rotary position embedding to (rows, heads, tokens, head_dim)."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin
