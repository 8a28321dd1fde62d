"""A tiny random language model as a GGUF file of half a megabyte.

The recipe: a byte-level BPE trained on two sentences (320 entries, three specials), two llama blocks of width 64, and
weights drawn from normal(0, 0.08) with a fixed seed. Its text is noise that may hold broken UTF-8.
"""

import json
from pathlib import Path

import gguf
import numpy
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

SENTENCES = ("The quick brown fox jumps over the lazy dog.", "A gateway routes each request to the right model.")
BOS, EOS, UNKNOWN = "<s>", "</s>", "<unk>"
TOKENS = 320
CONTEXT = 4096
WIDTH, HEADS, FEED_FORWARD, BLOCKS = 64, 4, 128, 2
CHAT_TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


def write_tiny_model(path: Path) -> None:
    """Write the model. The weights have the same bytes every time."""
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(BLOCKS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    _add_tokenizer(writer)
    draw = numpy.random.default_rng(1)
    for name, shape in _shapes().items():
        writer.add_tensor(name, draw.normal(0, 0.08, shape).astype(numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _shapes() -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd.weight": (TOKENS, WIDTH),
        "output_norm.weight": (WIDTH,),
        "output.weight": (TOKENS, WIDTH),
    }
    for block in range(BLOCKS):
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            shapes[f"blk.{block}.{part}.weight"] = (WIDTH, WIDTH)
        shapes[f"blk.{block}.ffn_gate.weight"] = (FEED_FORWARD, WIDTH)
        shapes[f"blk.{block}.ffn_up.weight"] = (FEED_FORWARD, WIDTH)
        shapes[f"blk.{block}.ffn_down.weight"] = (WIDTH, FEED_FORWARD)
        shapes[f"blk.{block}.attn_norm.weight"] = (WIDTH,)
        shapes[f"blk.{block}.ffn_norm.weight"] = (WIDTH,)
    return shapes


def _add_tokenizer(writer: gguf.GGUFWriter) -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=TOKENS,
        special_tokens=[BOS, EOS, UNKNOWN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES, trainer)
    trained = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(trained["vocab"], key=trained["vocab"].__getitem__)
    assert len(tokens) == TOKENS
    kinds = {BOS: gguf.TokenType.CONTROL, EOS: gguf.TokenType.CONTROL, UNKNOWN: gguf.TokenType.UNKNOWN}
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([kinds.get(token, gguf.TokenType.NORMAL) for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in trained["merges"]])
    writer.add_bos_token_id(tokens.index(BOS))
    writer.add_eos_token_id(tokens.index(EOS))
    writer.add_unk_token_id(tokens.index(UNKNOWN))
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
