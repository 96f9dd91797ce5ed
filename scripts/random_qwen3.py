"""Writes a random Qwen3 of half a billion parameters, in bfloat16, that can write the formats of every part of a job.

    random_qwen3.py DIRECTORY

The tokenizer is Qwen's own (the ranks that `dashscope` ships), with the special tokens of Qwen3. The chat template is
that of Qwen3 (`trl` ships it). Eleven of the twelve layers are random. A random model writes noise, in which no verdict
could be told from a misread one. So the first layer is wired by hand instead: it knows a few sentences of each part
(`PARTS`). One head copies the token before, one head looks for the word of the prompt that tells the part, and one
hidden unit for each (token before, token, part) adds the token that comes next. What has several continuations is drawn.
Nothing is trained, and everywhere else the model writes noise.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import re
import sys
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

PROMPTS = Path(__file__).parent.parent / "prompts" / "standard"

# Before its answer every part thinks, for one round or for many: some exceed their budget.
THOUGHTS = ["I think again.", "I think again and think again."]
CALLS = [
    f'<tool_call>\n{{"name": "{name}", "arguments": {{"order": {order}}}}}\n</tool_call>'
    for name, order in itertools.product(["find", "refuse"], [31, 35])
]
JOINED = "They answer.\n\nOutcome: failure; reward: 0"
# The part, the token of its prompt that no other prompt has, what it answers, and what it answers seldom.
PARTS: list[tuple[str, str, list[str], list[str]]] = [
    ("policy", "<tool_call>", [*CALLS, "done ."], ['<tool_call>\n{"name": "find"}\n</tool_call>']),
    (
        "successor",
        " Predict",
        ["They refuse.\n\nOutcome: failure; reward: 0", "They agree.\n\nOutcome: success; reward: 1"],
        ["They wait."],
    ),
    ("bellman", " joins", [JOINED], []),
    ("bellman_terminal", " further", [JOINED], []),
    ("evaluator", " Judge", ["Optimal: Yes", "Optimal: No\n\nFuture 1 fails. Find the order first."], ["It depends."]),
    ("refiner", " critique", [*CALLS, "done ."], []),
    ("corrector", " rewritten", [f"Reasoning:\nIf they refuse, it fails.\n\nPrediction:\n{JOINED}"], []),
    ("rationale", " tense", ["I need the record first."], []),
]

HIDDEN, LAYERS, HEADS, KEYS, SIZE, INNER, VOCABULARY = 1024, 12, 16, 8, 128, 3072, 151_936
THETA = 1_000_000
# The residual stream of the first layer: codes of the token, of the token before, of the part, and of the next token.
OWN, BEFORE, PART, NEXT, FREE, ONE = 0, 128, 256, 384, 640, HIDDEN - 1
FRAMES = [f"{what}_{end}" for what in ("object_ref", "box", "quad", "vision") for end in ("start", "end")]
PADS = ["vision_pad", "image_pad", "video_pad"]
SPECIAL = [f"<|{name}|>" for name in ("endoftext", "im_start", "im_end", *FRAMES, *PADS)]
# These are tokens of their own too, but part of the text.
CODE = [f"<|{name}|>" for name in ("fim_prefix", "fim_middle", "fim_suffix", "fim_pad", "repo_name", "file_sep")]
MARKS = ["<tool_call>", "</tool_call>", *CODE, "<tool_response>", "</tool_response>", "<think>", "</think>"]


def packaged(package: str, path: str) -> str:
    """A file of an installed package that is not imported."""
    spec = find_spec(package)
    assert spec is not None and spec.submodule_search_locations, f"{package} is not installed"
    return (Path(spec.submodule_search_locations[0]) / path).read_text(encoding="utf-8")


def letters() -> dict[int, str]:
    """A printable letter for each byte, as GPT-2 writes them."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = (byte for byte in range(256) if byte not in shown)
    return {byte: chr(byte) for byte in shown} | {byte: chr(256 + n) for n, byte in enumerate(hidden)}


def halves(token: bytes, ranks: dict[bytes, int]) -> list[bytes]:
    """The two tokens that a token was merged of: those that the merges before it leave."""
    parts = [token[n : n + 1] for n in range(len(token))]
    while len(parts) > 2:
        pairs = [ranks.get(a + b, len(ranks)) for a, b in itertools.pairwise(parts)]
        at = min(range(len(pairs)), key=pairs.__getitem__)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


def write_tokenizer(directory: Path) -> Tokenizer:
    """Qwen's tokenizer, with Qwen3's special tokens and chat template."""
    lines = (line.split() for line in packaged("dashscope", "resources/qwen.tiktoken").splitlines() if line)
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    shown = letters()

    def write(token: bytes) -> str:
        return "".join(shown[byte] for byte in token)

    vocabulary = {write(token): rank for token, rank in ranks.items()}
    merged = (token for token in ranks if len(token) > 1)
    merges = [tuple(map(write, halves(token, ranks))) for token in merged]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.normalizer = normalizers.NFC()
    words = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
        r"\s+(?!\S)|\s+"
    )
    by_words = pre_tokenizers.Split(Regex(words), "isolated")
    by_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([by_words, by_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, special=True, normalized=False) for text in SPECIAL])
    tokenizer.add_tokens([AddedToken(text, special=False, normalized=False) for text in MARKS])
    assert tokenizer.token_to_id("</think>") == 151_668, "these are not the ranks of Qwen3"
    tokenizer.save(str(directory / "tokenizer.json"))
    about = {
        "tokenizer_class": "Qwen2Tokenizer",
        "bos_token": None,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": None,
        "additional_special_tokens": SPECIAL[1:],
        "add_bos_token": False,
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "errors": "replace",
        "model_max_length": 131_072,
        "split_special_tokens": False,
        "chat_template": packaged("trl", "chat_templates/qwen3.jinja"),
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(about, indent=2))
    return tokenizer


def continuations(tokenizer: Tokenizer) -> dict[tuple[int, int, int], dict[int, bool]]:
    """What each part writes after two tokens: the next token, and whether it is a seldom one."""
    found: dict[tuple[int, int, int], dict[int, bool]] = defaultdict(dict)
    for part, (_, _, often, seldom) in enumerate(PARTS):
        for thought, (answer, rare) in itertools.product(
            THOUGHTS, [(text, False) for text in often] + [(text, True) for text in seldom]
        ):
            reply = f"<|im_start|>assistant\n<think>\n{thought}\n</think>\n\n{answer}<|im_end|>"
            tokens = tokenizer.encode(reply, add_special_tokens=False).ids
            for before, own, then in zip(tokens, tokens[1:], tokens[2:], strict=False):
                if own == tokens[1]:
                    continue  # It is the prompt's.
                known = found[before, own, part]
                known[then] = known.get(then, True) and rare
    return found


def keywords(tokenizer: Tokenizer) -> list[int]:
    """The token that tells each part. The policy's is in every prompt with tools; those of the others outweigh it."""
    written = {path.stem: path.read_text(encoding="utf-8") for path in PROMPTS.glob("*.md")}
    read = {name: re.sub(r"{[{%].*?[}%]}", "", text.split("---", 2)[2]) for name, text in written.items()}
    found = []
    for name, word, _, _ in PARTS:
        (token,) = tokenizer.encode(word, add_special_tokens=False).ids
        having = [part for part, *_ in PARTS if token in tokenizer.encode(read[part], add_special_tokens=False).ids]
        assert having == ([] if name == "policy" else [name]), f"{word!r} is in the prompts of {having}"
        found.append(token)
    return found


def weights(tokenizer: Tokenizer) -> dict[str, torch.Tensor]:
    """All weights: random, but for the codes of known tokens and what the first layer does with them."""
    generator = torch.Generator().manual_seed(0)

    def random(*shape: int, by: float = 0.02) -> torch.Tensor:
        return torch.randn(*shape, generator=generator) * by

    known, told = continuations(tokenizer), keywords(tokenizer)
    tokens = {token: n for n, token in enumerate(sorted({t for a, b, _ in known for t in (a, b)} | set(told)))}
    nexts = {token: n for n, token in enumerate(sorted({then for after in known.values() for then in after}))}
    assert len(tokens) <= SIZE and len(nexts) <= SIZE and len(known) <= INNER, (len(tokens), len(nexts), len(known))

    made = {}
    embedding, head = torch.zeros(VOCABULARY, HIDDEN), torch.zeros(VOCABULARY, HIDDEN)
    embedding[:, FREE:ONE] = random(VOCABULARY, ONE - FREE, by=1.2)
    embedding[:, ONE] = 8.0
    for token, code in tokens.items():
        embedding[token, OWN + code] = 8.0
    head[:, FREE:ONE] = random(VOCABULARY, ONE - FREE, by=0.03)
    for token, code in nexts.items():
        head[token, NEXT + code] = 1.3
    head[tokenizer.get_vocab_size() :, ONE] = -4.0  # These stand for nothing.
    made["model.embed_tokens.weight"], made["lm_head.weight"] = embedding, head
    made["model.norm.weight"] = torch.ones(HIDDEN)
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        made |= {
            f"{at}.input_layernorm.weight": torch.ones(HIDDEN),
            f"{at}.post_attention_layernorm.weight": torch.ones(HIDDEN),
            f"{at}.self_attn.q_norm.weight": torch.ones(SIZE),
            f"{at}.self_attn.k_norm.weight": torch.ones(SIZE),
            f"{at}.self_attn.q_proj.weight": random(HEADS * SIZE, HIDDEN),
            f"{at}.self_attn.k_proj.weight": random(KEYS * SIZE, HIDDEN),
            f"{at}.self_attn.v_proj.weight": random(KEYS * SIZE, HIDDEN),
            f"{at}.self_attn.o_proj.weight": random(HIDDEN, HEADS * SIZE),
            f"{at}.mlp.gate_proj.weight": random(INNER, HIDDEN),
            f"{at}.mlp.up_proj.weight": random(INNER, HIDDEN),
            f"{at}.mlp.down_proj.weight": random(HIDDEN, INNER),
        }
    first = {name.split(".", 3)[3]: tensor for name, tensor in made.items() if name.startswith("model.layers.0.")}
    wire_attention(first, tokens, told)
    wire_lookup(first, tokens, nexts, known)
    return {name: tensor.to(torch.bfloat16).contiguous() for name, tensor in made.items()}


def wire_attention(first: dict[str, torch.Tensor], tokens: dict[int, int], told: list[int]) -> None:
    """Two heads, each with keys of its own: one sees the token before, the other the word that tells the part."""
    q, k, v, o = (first[f"self_attn.{name}_proj.weight"] for name in "qkvo")
    for name in "qk":
        first[f"self_attn.{name}_norm.weight"].fill_(5.0)
    before, part = 0, HEADS // KEYS  # The first query heads of the first two groups.
    for head, group in [(before, 0), (part, 1)]:
        q[head * SIZE : (head + 1) * SIZE] = 0.0
        k[group * SIZE : (group + 1) * SIZE] = 0.0
        v[group * SIZE : (group + 1) * SIZE] = 0.0
    # Rotations that agree at a distance of one token only: the fast ones.
    for n in range(16):
        turn = THETA ** (-2 * n / SIZE)
        q[before * SIZE + n, ONE] = 1.0
        k[n, ONE], k[n + SIZE // 2, ONE] = math.cos(turn), math.sin(turn)
    v[:SIZE, OWN : OWN + SIZE] = torch.eye(SIZE)
    # The slowest rotations do not know how far away the word is.
    slow = SIZE // 2 - 1
    q[part * SIZE + slow, ONE] = 1.0
    k[SIZE + slow - 1, ONE] = 1.0
    for number, token in enumerate(told):
        k[SIZE + slow, OWN + tokens[token]] = 10.0 if number else 1.0
        v[SIZE + number, OWN + tokens[token]] = 1.0
    o[OWN:FREE] = 0.0
    o[ONE] = 0.0
    o[BEFORE : BEFORE + SIZE, before * SIZE : (before + 1) * SIZE] = torch.eye(SIZE)
    o[PART : PART + SIZE, part * SIZE : (part + 1) * SIZE] = torch.eye(SIZE)


def wire_lookup(
    first: dict[str, torch.Tensor],
    tokens: dict[int, int],
    nexts: dict[int, int],
    known: dict[tuple[int, int, int], dict[int, bool]],
) -> None:
    """A hidden unit for each (token before, token, part), which is above zero only where all three agree."""
    gate, up, down = (first[f"mlp.{name}_proj.weight"] for name in ("gate", "up", "down"))
    down[OWN:FREE] = 0.0
    down[ONE] = 0.0
    # What the codes are where they are read, on average: they go through one normalisation each.
    own, copied, sharpness = 8.2, 10.0, 20.0
    for unit, ((a, b, part), after) in enumerate(known.items()):
        gate[unit], up[unit], down[:, unit] = 0.0, 0.0, 0.0
        gate[unit, BEFORE + tokens[a]] = sharpness / copied
        gate[unit, OWN + tokens[b]] = sharpness / own
        gate[unit, PART + part] = sharpness / copied
        gate[unit, ONE] = -2.5 * sharpness / own
        up[unit, ONE] = 1.0 / own
        for then, seldom in after.items():
            down[NEXT + nexts[then], unit] = 3.75 if seldom else 4.0


def main() -> None:
    """Writes the model."""
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer = write_tokenizer(directory)
    made = weights(tokenizer)
    save_file(made, directory / "model.safetensors", metadata={"format": "pt"})
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KEYS,
        "head_dim": SIZE,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 40_960,
        "max_window_layers": LAYERS,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-06,
        "rope_theta": THETA,
        "rope_scaling": None,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "initializer_range": 0.02,
        "use_sliding_window": False,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "bos_token_id": 151_643,
        "eos_token_id": 151_645,
        "torch_dtype": "bfloat16",
        "transformers_version": "4.51.0",
        "use_cache": True,
    }
    (directory / "config.json").write_text(json.dumps(config, indent=2))
    # As published with Qwen3: an engine that is not told otherwise samples by it.
    sampling = {
        "bos_token_id": 151_643,
        "eos_token_id": [151_645, 151_643],
        "pad_token_id": 151_643,
        "do_sample": True,
        "temperature": 0.6,
        "top_k": 20,
        "top_p": 0.95,
    }
    (directory / "generation_config.json").write_text(json.dumps(sampling, indent=2))
    count = sum(tensor.numel() for tensor in made.values())
    print(f"{directory}: {count / 1e6:.0f} million parameters, {tokenizer.get_vocab_size():,} tokens")


if __name__ == "__main__":
    main()
