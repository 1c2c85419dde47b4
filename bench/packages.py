"""Other people's models through `nereid.optimize`: how many get verified kernels, and why the others do not.
bench/packages.md has the table.

    python -m venv VENV && VENV/bin/pip install torch==2.11.* triton==3.6.* numpy torchvision timm transformers
    VENV/bin/python bench/packages.py --policy hybrid [--only bert ...] [-o RESULTS.jsonl]

Configurations are small, so that a CPU judges each in seconds. Kernels run in Triton's interpreter and are
compared with the original at the example's batch; at two other batches the call must fall back to the
original.
"""

import argparse
import copy
import json
import os
import pathlib
import signal
import sys
import time
import warnings

os.environ["TRITON_INTERPRET"] = "1"
ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "python")]

import interpreted  # noqa: E402
import nereid  # noqa: E402
import torch  # noqa: E402

warnings.simplefilter("ignore")


def images(size=32, channels=3):
    return lambda batch: (torch.randn(batch, channels, size, size),)


def tokens(vocabulary=99, length=7):
    return lambda batch: {"input_ids": torch.randint(0, vocabulary, (batch, length))}


def torchvision_models():
    import torchvision.models as tv
    from torchvision.models.convnext import CNBlockConfig, ConvNeXt
    from torchvision.models.densenet import DenseNet
    from torchvision.models.resnet import BasicBlock, Bottleneck, ResNet
    from torchvision.models.segmentation.fcn import FCNHead
    from torchvision.ops import MLP, Conv2dNormActivation, SqueezeExcitation

    return {
        "resnet_basic": (lambda: ResNet(BasicBlock, [1, 1, 1, 1], num_classes=10), images()),
        "resnet_bottleneck": (
            lambda: ResNet(Bottleneck, [1, 1, 1, 1], num_classes=10, width_per_group=16),
            images(),
        ),
        "densenet": (lambda: DenseNet(8, (2, 2), 16, num_classes=10), images()),
        "squeezenet": (lambda: tv.squeezenet1_1(num_classes=10), images(48)),
        "shufflenet_v2_x0_5": (lambda: tv.shufflenet_v2_x0_5(num_classes=10), images()),
        "mobilenet_v3_small": (lambda: tv.mobilenet_v3_small(num_classes=10), images()),
        "vision_transformer": (lambda: tv.VisionTransformer(32, 8, 1, 2, 32, 64, num_classes=10), images()),
        "swin": (lambda: tv.SwinTransformer([4, 4], 16, [1, 1], [2, 2], [4, 4], num_classes=10), images()),
        "convnext": (
            lambda: ConvNeXt([CNBlockConfig(16, 32, 1), CNBlockConfig(32, None, 1)], num_classes=10),
            images(),
        ),
        "fcn_head": (lambda: FCNHead(16, 5), images(12, 16)),
        "conv_norm_activation": (lambda: Conv2dNormActivation(3, 8), images(12)),
        "squeeze_excitation": (lambda: SqueezeExcitation(8, 4), images(12, 8)),
        "mlp": (lambda: MLP(24, [32, 8], dropout=0.1), lambda batch: (torch.randn(batch, 24),)),
    }


def timm_models():
    import timm
    from timm.layers import GlobalResponseNormMlp, Mlp, SwiGLU
    from timm.models.vision_transformer import Attention, Block

    names = ("test_vit", "test_vit2", "test_vit3", "test_resnet", "test_efficientnet", "test_efficientnet_gn", "test_efficientnet_ln",
             "test_convnext", "test_convnext2", "test_nfnet", "test_byobnet", "test_mambaout")  # fmt: skip
    made = {name: (lambda name=name: timm.create_model(name, num_classes=10), images(64)) for name in names}
    sequences = lambda batch: (torch.randn(batch, 9, 32),)  # noqa: E731
    return {
        **made,
        "timm_block": (lambda: Block(32, 2), sequences),
        "timm_attention": (lambda: Attention(32, 2, qkv_bias=True), sequences),
        "timm_mlp": (lambda: Mlp(32, 64), sequences),
        "timm_swiglu": (lambda: SwiGLU(32, 64), sequences),
        "timm_grn_mlp": (lambda: GlobalResponseNormMlp(8, 16), lambda batch: (torch.randn(batch, 5, 5, 8),)),
    }


def transformers_models():
    import transformers as t

    small = dict(vocab_size=99, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=48, max_position_embeddings=32,
                 use_cache=False, pad_token_id=0, bos_token_id=1, eos_token_id=2)  # fmt: skip
    grouped = {**small, "num_key_value_heads": 1, "head_dim": 16}
    old = dict(
        vocab_size=99,
        n_embd=32,
        n_layer=1,
        n_head=2,
        n_positions=32,
        n_inner=48,
        use_cache=False,
        bos_token_id=1,
        eos_token_id=2,
    )
    encoder = dict(vocab_size=99, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=48,
                   decoder_ffn_dim=48, max_position_embeddings=32, use_cache=False)  # fmt: skip
    vision = dict(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=48,
        image_size=16,
        patch_size=8,
    )

    def both(batch):
        return {
            "input_ids": torch.randint(0, 99, (batch, 7)),
            "decoder_input_ids": torch.randint(0, 99, (batch, 5)),
        }

    def masked(batch):
        return {
            "input_ids": torch.randint(0, 99, (batch, 7)),
            "attention_mask": torch.ones(batch, 7, dtype=torch.int64),
        }

    def model(name, config, options):
        return lambda: getattr(t, name)(getattr(t, config)(**options))

    return {
        "bert": (model("BertModel", "BertConfig", small), tokens()),
        "bert_masked": (model("BertForMaskedLM", "BertConfig", small), masked),
        "roberta": (model("RobertaModel", "RobertaConfig", small), tokens()),
        "distilbert": (
            model(
                "DistilBertModel",
                "DistilBertConfig",
                dict(vocab_size=99, dim=32, n_layers=1, n_heads=2, hidden_dim=48),
            ),
            tokens(),
        ),
        "albert": (model("AlbertModel", "AlbertConfig", {**small, "embedding_size": 16}), tokens()),
        "electra": (model("ElectraModel", "ElectraConfig", {**small, "embedding_size": 16}), tokens()),
        "mpnet": (model("MPNetModel", "MPNetConfig", small), tokens()),
        "gpt2": (model("GPT2LMHeadModel", "GPT2Config", old), tokens()),
        "gpt_neox": (model("GPTNeoXForCausalLM", "GPTNeoXConfig", small), tokens()),
        "opt": (
            model("OPTForCausalLM", "OPTConfig", {**small, "ffn_dim": 48, "word_embed_proj_dim": 32}),
            tokens(),
        ),
        "bloom": (
            model(
                "BloomForCausalLM",
                "BloomConfig",
                dict(vocab_size=99, hidden_size=32, n_layer=1, n_head=2, use_cache=False),
            ),
            tokens(),
        ),
        "llama": (model("LlamaForCausalLM", "LlamaConfig", grouped), tokens()),
        "mistral": (model("MistralForCausalLM", "MistralConfig", grouped), tokens()),
        "qwen2": (model("Qwen2ForCausalLM", "Qwen2Config", grouped), tokens()),
        "qwen3": (model("Qwen3ForCausalLM", "Qwen3Config", grouped), tokens()),
        "gemma2": (model("Gemma2ForCausalLM", "Gemma2Config", grouped), tokens()),
        "phi": (model("PhiForCausalLM", "PhiConfig", small), tokens()),
        "olmo2": (model("Olmo2ForCausalLM", "Olmo2Config", grouped), tokens()),
        "t5_encoder": (
            model(
                "T5EncoderModel",
                "T5Config",
                dict(vocab_size=99, d_model=32, d_kv=16, d_ff=48, num_layers=1, num_heads=2),
            ),
            tokens(),
        ),
        "bart": (model("BartModel", "BartConfig", encoder), both),
        "vit": (model("ViTModel", "ViTConfig", vision), images(16)),
        "dinov2": (model("Dinov2Model", "Dinov2Config", vision), images(16)),
        "clip_text": (model("CLIPTextModel", "CLIPTextConfig", small), tokens()),
        "convnextv2": (
            model(
                "ConvNextV2Model",
                "ConvNextV2Config",
                dict(hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, image_size=32),
            ),
            images(),
        ),
    }


class _TooLong(Exception):
    pass


def limited(seconds, work):
    """What `work` returns, or _TooLong."""

    def stop(*_):
        raise _TooLong

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        return work()
    finally:
        signal.alarm(0)


def tensors_of(value):
    found = []
    nereid._structure.flatten(value, found)
    return found


def called(module, inputs):
    inputs = copy.deepcopy(inputs)
    return module(**inputs) if isinstance(inputs, dict) else module(*inputs)


def same(one, other):
    one, other = tensors_of(one), tensors_of(other)
    return len(one) == len(other) and all(
        a.shape == b.shape
        and a.dtype == b.dtype
        and torch.allclose(a.double(), b.double(), rtol=1e-3, atol=1e-4, equal_nan=True)
        for a, b in zip(one, other)
    )


def cause(reason):
    """A reason without names and numbers, for the table."""
    return " ".join(reason.split())[:160]


@torch.no_grad()
def judged(name, make, inputs, options):
    torch.manual_seed(0)
    module = make().eval()
    example = inputs(2)
    start = time.time()
    answer = {"name": name, "parameters": sum(p.numel() for p in module.parameters())}
    try:
        fast = nereid.optimize(module, example, **options)
    except Exception as error:
        return {
            **answer,
            "verified": False,
            "reason": f"{type(error).__name__}: {error}"[:500],
            "seconds": time.time() - start,
        }
    answer.update(verified=fast.nereid_reason is None, reason=fast.nereid_reason, seconds=round(time.time() - start, 1),
                  verdict=fast.nereid_verdict and fast.nereid_verdict.verdict)  # fmt: skip
    kernels = nereid._structure and sum(
        line.startswith("@triton.jit") for line in (fast.nereid_source or "").splitlines()
    )
    answer["kernels"] = kernels
    try:
        answer["right"] = limited(
            options.get("check", 120), lambda: same(called(fast, example), called(module, example))
        )
    except _TooLong:
        answer["right"] = "too long for the interpreter"
    except Exception as error:
        answer["right"] = f"{type(error).__name__}: {error}"[:200]
    answer["other_batches"] = all(
        same(called(fast, more), called(module, more)) for more in (inputs(1), inputs(3))
    )
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", default="hybrid", help="strict, mostly or hybrid (default)")
    parser.add_argument("--budget", default="60s", help="of each model (60s)")
    parser.add_argument("--only", nargs="*", default=(), help="names of models (all)")
    parser.add_argument(
        "-o", "--output", help="a file of JSON lines; models that it holds are not judged again"
    )
    given = parser.parse_args()
    interpreted.libdevice()
    models = {**torchvision_models(), **timm_models(), **transformers_models()}
    options = dict(
        policy=given.policy,
        budget=given.budget,
        first=True,
        proposers="compiler",
        device="cpu",
        trials=1,
        seed=5,
    )
    path = pathlib.Path(given.output) if given.output else None
    known = (
        {one["name"]: one for one in map(json.loads, path.read_text().splitlines())}
        if path and path.exists()
        else {}
    )
    for name, (make, inputs) in models.items():
        if name in known or (given.only and name not in given.only):
            continue
        known[name] = judged(name, make, inputs, options)
        print(json.dumps(known[name]), flush=True)
        if path:
            with path.open("a") as file:
                file.write(json.dumps(known[name]) + "\n")
    verified = sum(one["verified"] for one in known.values())
    print(f"{verified} of {len(known)} verified under {given.policy}")


if __name__ == "__main__":
    main()
