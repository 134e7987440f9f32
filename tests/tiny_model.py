"""A tiny Qwen2 with random weights, made when needed: its answers mean nothing, and everything around it is real.

Needs torch and transformers, which come with vLLM. Nothing is downloaded.
"""

import hashlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import msgspec

from tests.examples import shipped

ROOT = Path(__file__).parent.parent
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """The shape of the model. vLLM on the CPU needs heads of 64; `context` is in tokens.

    Without `weights` it holds only what vLLM needs to make random ones (load_format dummy).
    """

    vocabulary: int = 4096
    hidden: int = 256
    intermediate: int = 512
    layers: int = 2
    heads: int = 4
    kv_heads: int = 2
    context: int = 32_768
    spread: float = 0.05
    seed: int = 0
    weights: bool = True


TINY = Shape()
SEVEN_B = Shape(
    vocabulary=152_064,
    hidden=3584,
    intermediate=18_944,
    layers=28,
    heads=28,
    kv_heads=4,
    weights=False,
)


def tiny_model(shape: Shape = TINY) -> Path:
    """The folder of the model of `shape` in the temporary folder, made if missing."""
    digest = hashlib.blake2b(Path(__file__).read_bytes() + msgspec.json.encode(shape), digest_size=8)
    for path in _corpus():
        digest.update(path.read_bytes())
    name = f"adjudge-tiny-{os.getuid()}-{digest.hexdigest()}"
    folder = Path(tempfile.gettempdir()) / name
    if not folder.exists():
        made = Path(tempfile.mkdtemp(prefix="adjudge-tiny-"))
        _write(shape, made)
        try:
            made.rename(folder)
        except OSError:  # another process made it first
            shutil.rmtree(made)
    return folder


def _write(shape: Shape, folder: Path) -> None:
    import torch
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

    torch.manual_seed(shape.seed)
    config = Qwen2Config(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.intermediate,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=shape.context,
        initializer_range=shape.spread,
        bos_token_id=None,
        eos_token_id=2,
        pad_token_id=0,
        dtype="bfloat16",
    )
    if shape.weights:
        Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
    else:
        config.architectures = ["Qwen2ForCausalLM"]
        config.save_pretrained(folder)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_tokenizer(shape.vocabulary),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        model_max_length=shape.context,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    tokenizer.save_pretrained(folder)


def _tokenizer(vocabulary: int) -> object:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((path.read_text(encoding="utf-8") for path in _corpus()), trainer)
    return tokenizer


def _corpus() -> list[Path]:
    """Texts in both languages, so that tokens are about as long as real ones."""
    return [*sorted(shipped("quickstart").glob("*/*.jsonl")), *sorted((ROOT / "prompts").glob("*.md"))]


if __name__ == "__main__":
    sys.stdout.write(f"{tiny_model()}\n")
