"""Attention over packed sequences: every token sees its own sequence up to itself, and nothing is padding."""

from __future__ import annotations

from inspect import signature
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention.varlen import varlen_attn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

PACKED = "nlac_packed"
"""Its name among the attention kernels of transformers."""

# PyTorch 2.11 shares keys among heads without being told.
_SHARED_KEYS = {"enable_gqa": True} if "enable_gqa" in signature(varlen_attn).parameters else {}


def packed_attention(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    cu_seq_lens_q: torch.Tensor | None = None,
    max_length_q: int | None = None,
    **more: Any,
) -> tuple[torch.Tensor, None]:
    """Attention of `[1, heads, tokens, size]`, where sequence n begins at `cu_seq_lens_q[n]`, as transformers calls it.
    With a mask it is the plain one: candidates after a prompt see what no list of beginnings can say.

    Raises:
        ValueError: the model wants of its attention what this one does not do.
    """
    unknown = [name for name in ("softcap", "s_aux", "position_bias") if more.get(name) is not None]
    if unknown:
        raise ValueError(f"packed attention has no {' and no '.join(unknown)}")
    if attention_mask is not None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, scaling=scaling)
    if cu_seq_lens_q is None or query.shape[0] != 1:
        raise ValueError("packed attention was not told where sequences begin")
    if query.is_cuda and value.dtype in (torch.bfloat16, torch.float16):
        # One kernel for all sequences. A window of w tokens is the token itself and w - 1 before it.
        lines = [tensor[0].transpose(0, 1).to(value.dtype).contiguous() for tensor in (query, key, value)]
        window = (sliding_window - 1 if sliding_window else -1, 0)
        starts, longest = cu_seq_lens_q, max_length_q
        read = varlen_attn(*lines, starts, starts, longest, longest, scale=scaling, window_size=window, **_SHARED_KEYS)
        return read[None], None
    bounds = cu_seq_lens_q.tolist()
    parts = []
    for start, end in zip(bounds, bounds[1:], strict=False):
        q, k, v = (tensor[:, :, start:end] for tensor in (query, key, value))
        mask = None
        if sliding_window is not None and end - start > sliding_window:
            mask = torch.ones(end - start, end - start, dtype=torch.bool, device=q.device)
            mask = mask.tril().triu(1 - sliding_window)
        plain = F.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=mask is None, scale=scaling, enable_gqa=True
        )
        parts.append(plain.transpose(1, 2))
    return torch.cat(parts, dim=1), None


AttentionInterface.register(PACKED, packed_attention)
