"""The tiny model's tokenizer, and a tiny random Llama model around it, as folders that transformers and vLLM load.

The model differs from the model of `tiny_model.py`: vLLM needs larger heads.
"""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import gguf
import numpy
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from providers.json_types import JsonObject
from tests.support.tiny_model import BOS, EOS, TOKENS, UNKNOWN, write_tiny_model

HIDDEN, HEAD, HEADS, FEED_FORWARD, LAYERS, CONTEXT = 128, 64, 2, 256, 2, 512

TOKENIZER_CONFIG: JsonObject = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": BOS,
    "eos_token": EOS,
    "unk_token": UNKNOWN,
    "add_prefix_space": False,
    "clean_up_tokenization_spaces": False,
    "model_max_length": CONTEXT,
}
MODEL_CONFIG: JsonObject = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "bos_token_id": 0,
    "eos_token_id": 1,
    "head_dim": HEAD,
    "hidden_act": "silu",
    "hidden_size": HIDDEN,
    "intermediate_size": FEED_FORWARD,
    "max_position_embeddings": CONTEXT,
    "num_attention_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "num_key_value_heads": HEADS,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "torch_dtype": "float32",
    "vocab_size": TOKENS,
}


def write_tokenizer(folder: Path) -> None:
    """Write `tokenizer.json` and `tokenizer_config.json` with the vocabulary of the tiny model."""
    with TemporaryDirectory() as scratch:
        path = Path(scratch) / "tiny.gguf"
        write_tiny_model(path)
        fields = gguf.GGUFReader(path).fields
        tokens = fields["tokenizer.ggml.tokens"].contents()
        merges = fields["tokenizer.ggml.merges"].contents()
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[tuple(merge.split(" ")) for merge in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([BOS, EOS, UNKNOWN])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    _write_json(folder / "tokenizer_config.json", TOKENIZER_CONFIG)


def write_model(folder: Path) -> None:
    """Write the model beside the tokenizer, in the safetensors format. The weights are the same every time."""
    draw = numpy.random.default_rng(1)
    tensors = {name: draw.normal(0, 0.2, shape).astype("<f4") for name, shape in _shapes().items()}
    header, at = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": "F32", "shape": tensor.shape, "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    head = json.dumps(header).encode()
    weights = b"".join(tensor.tobytes() for tensor in tensors.values())
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + weights)
    _write_json(folder / "config.json", MODEL_CONFIG)


def _shapes() -> Mapping[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (TOKENS, HIDDEN),
        "model.norm.weight": (HIDDEN,),
        "lm_head.weight": (TOKENS, HIDDEN),
    }
    for layer in range(LAYERS):
        block = f"model.layers.{layer}."
        for part in ("q_proj", "k_proj", "v_proj", "o_proj"):
            shapes[f"{block}self_attn.{part}.weight"] = (HEADS * HEAD, HIDDEN)
        shapes[f"{block}mlp.gate_proj.weight"] = (FEED_FORWARD, HIDDEN)
        shapes[f"{block}mlp.up_proj.weight"] = (FEED_FORWARD, HIDDEN)
        shapes[f"{block}mlp.down_proj.weight"] = (HIDDEN, FEED_FORWARD)
        shapes[f"{block}input_layernorm.weight"] = (HIDDEN,)
        shapes[f"{block}post_attention_layernorm.weight"] = (HIDDEN,)
    return shapes


def _write_json(path: Path, value: JsonObject) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
