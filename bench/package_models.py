"""Modules of timm, torchvision, transformers, diffusers and torchaudio with small configurations, for
bench/packages.py.

Each is (function that makes the module, function from a batch size to forward's arguments).
"""

import importlib
import inspect

import torch

r = torch.randn


def images(size=32, channels=3):
    return lambda batch: (torch.randn(batch, channels, size, size),)


def tokens(vocabulary=99, length=7):
    return lambda batch: {"input_ids": torch.randint(0, vocabulary, (batch, length))}


def all_modules():
    """All by name: "timm/beit", "timm/beit/block", "transformers/BertModel", ..."""
    made = {}
    for package, models in (
        ("torchvision", torchvision_models), ("timm", timm_models), ("transformers", transformers_models),
        ("transformers", transformers_heads), ("diffusers", diffusers_models),
        ("torchaudio", torchaudio_modules),
    ):  # fmt: skip
        made.update({f"{package}/{name}": pair for name, pair in models().items()})
    return made


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


# Of each family the smallest model: its name, sizes, image options, image size.
TIMM_FAMILIES = {
    "beit": ("beit_base_patch16_224", {"embed_dim": 32, "depth": 1, "num_heads": 2}, {"img_size": 32}, 32),
    "byoanet": ("halonet_h1", {}, {"img_size": 256}, 256),
    "byobnet": ("test_byobnet", {}, {"img_size": 32}, 32),
    "cait": ("cait_xxs24_224", {"embed_dim": 32, "depth": 1, "num_heads": 2}, {"img_size": 32}, 32),
    "coat": ("coat_tiny", {}, {"img_size": 32}, 32),
    "convit": ("convit_tiny", {"embed_dim": 32, "depth": 1, "num_heads": 2}, {"img_size": 32}, 32),
    "convmixer": ("convmixer_768_32", {}, {}, 32),
    "convnext": ("test_convnext3", {"dims": [16, 16, 32, 32], "depths": [1, 1, 1, 1]}, {}, 32),
    "cpubone": ("cpubone_nano", {}, {}, 32),
    "crossvit": ("crossvit_tiny_240", {}, {}, 32),
    "csatv2": ("csatv2", {}, {}, 64),
    "cspnet": ("cs3darknet_focus_s", {}, {}, 32),
    "cspnext": ("cspnext_tiny", {"depths": [1, 1, 1, 1]}, {}, 32),
    "davit": ("davit_tiny", {"embed_dims": [16, 32, 32], "depths": [1, 1, 1], "num_heads": [1, 2, 2]}, {},
        32),
    "deepseek_vit": ("deepseek_vit_412m", {"embed_dim": 32, "depth": 1, "num_heads": 2}, {"img_size": 224},
        224),
    "deit": ("deit_tiny_patch16_224", {"embed_dim": 32, "depth": 1, "num_heads": 2}, {"img_size": 32}, 32),
    "densenet": ("densenet121", {}, {}, 32),
    "dla": ("dla46x_c", {}, {}, 32),
    "dpn": ("dpn48b", {}, {}, 32),
    "edgenext": ("edgenext_xx_small", {"dims": [16, 16, 32, 32], "depths": [1, 1, 1, 1]}, {}, 32),
    "efficientformer": ("efficientformer_l1", {"embed_dims": [16, 16, 32, 32], "depths": [1, 1, 1, 1]},
        {"img_size": 224}, 224),
    "efficientformer_v2": ("efficientformerv2_s0", {"embed_dims": [16, 16, 32, 32], "depths": [1, 1, 1, 1]},
        {"img_size": 32}, 32),
    "efficientnet": ("test_efficientnet", {}, {}, 32),
    "efficientvim": ("efficientvim_m1", {"depths": [1, 1, 1]}, {}, 32),
    "efficientvit_mit": ("efficientvit_b0", {"depths": [1, 1, 1]}, {}, 32),
    "efficientvit_msra": ("efficientvit_m0", {"embed_dim": [16, 32, 64], "depth": [1, 1, 1],
        "num_heads": [1, 2, 2]}, {"img_size": 32}, 32),
    "eva": ("eva02_tiny_patch14_224", {"embed_dim": 32, "depth": 1, "num_heads": 2}, {"img_size": 32}, 32),
    "fasternet": ("fasternet_t0", {"embed_dim": 16, "depths": [1, 1, 1, 1]}, {}, 32),
    "fastvit": ("fastvit_t8", {"layers": [1, 1, 1, 1], "embed_dims": [16, 16, 32, 32]}, {}, 32),
    "focalnet": ("focalnet_tiny_srf", {}, {}, 32),
    "gcvit": ("gcvit_xxtiny", {"embed_dim": 16}, {"img_size": 32}, 32),
    "gemma4_vit": ("gemma4_vit_167m_enc", {"embed_dim": 32, "depth": 1, "num_heads": 2}, {"img_size": 48},
        48),
    "ghostnet": ("ghostnet_050", {}, {}, 32),
    "hardcorenas": ("hardcorenas_b", {}, {}, 32),
    "hgnet": ("hgnetv2_b0", {}, {}, 32),
    "hiera": ("hiera_tiny_224", {"embed_dim": 16}, {"img_size": 32}, 32),
    "hieradet_sam2": ("sam2_hiera_tiny", {"embed_dim": 16}, {}, 32),
    "hrnet": ("hrnet_w18_small", {}, {}, 32),
    "iformer": ("iformer_t", {}, {}, 32),
    "inception_next": ("inception_next_tiny", {"dims": [16, 16, 32, 32], "depths": [1, 1, 1, 1]}, {}, 32),
    "inception_resnet_v2": ("inception_resnet_v2", {}, {}, 96),
    "inception_v3": ("inception_v3", {}, {}, 96),
    "inception_v4": ("inception_v4", {}, {}, 96),
    "lcnetv2": ("lcnetv2_small", {"depths": [1, 1, 1, 1]}, {}, 32),
    "levit": ("levit_128s", {"embed_dim": [16, 32, 64], "depth": [1, 1, 1], "num_heads": [1, 2, 2]},
        {"img_size": 32}, 32),
    "lowformer": ("lowformer_b0", {}, {}, 32),
    "mambaout": ("mambaout_femto", {"dims": [16, 16, 32, 32], "depths": [1, 1, 1, 1]}, {}, 32),
    "maxxvit": ("test_coatnet", {"depths": [1, 1, 1, 1]}, {"img_size": 32}, 32),
    "metaformer": ("poolformerv2_s12", {}, {}, 32),
    "mlp_mixer": ("gmlp_ti16_224", {}, {"img_size": 32}, 32),
    "mobilenetv3": ("lcnet_035", {}, {}, 32),
    "mobilenetv5": ("mobilenetv5_base", {}, {}, 32),
    "mobilevit": ("mobilevit_xxs", {}, {"img_size": 32}, 32),
    "mvitv2": ("mvitv2_tiny", {}, {"img_size": 32}, 32),
    "naflexvit": ("naflexvit_base_patch16_parfac_gap", {"embed_dim": 32, "depth": 1, "num_heads": 2},
        {"img_size": 32}, 32),
    "nasnet": ("nasnetalarge", {}, {}, 32),
    "nest": ("nest_tiny", {}, {"img_size": 32}, 32),
    "nextvit": ("nextvit_small", {}, {}, 32),
    "nfnet": ("test_nfnet", {"depths": [1, 1, 1]}, {}, 32),
    "pit": ("pit_ti_224", {}, {"img_size": 32}, 32),
    "pnasnet": ("pnasnet5large", {}, {}, 32),
    "pvt_v2": ("pvt_v2_b0", {"embed_dims": [16, 16, 32, 32], "depths": [1, 1, 1, 1],
        "num_heads": [1, 1, 2, 2]}, {}, 32),
    "qwen3_vit": ("qwen3_vit_88m", {"embed_dim": 32, "depth": 1, "num_heads": 2}, {"img_size": 32}, 32),
    "rdnet": ("rdnet_tiny", {}, {}, 32),
    "regnet": ("regnetx_002", {}, {}, 32),
    "repghost": ("repghostnet_050", {}, {}, 32),
    "repvit": ("repvit_m1", {}, {"img_size": 32}, 32),
    "res2net": ("res2net50_14w_8s", {"layers": [1, 1, 1, 1], "channels": [16, 16, 32, 32]}, {}, 32),
    "resnest": ("resnest14d", {"layers": [1, 1, 1, 1], "channels": [16, 16, 32, 32]}, {}, 32),
    "resnet": ("resnet10t", {"layers": [1, 1, 1, 1], "channels": [16, 16, 32, 32]}, {}, 32),
    "resnetv2": ("resnetv2_18", {"layers": [1, 1, 1, 1], "channels": [16, 16, 32, 32]}, {}, 32),
    "rexnet": ("rexnet_100", {}, {}, 32),
    "selecsls": ("selecsls42", {}, {}, 32),
    "senet": ("legacy_seresnet18", {"layers": [1, 1, 1, 1]}, {}, 32),
    "sequencer": ("sequencer2d_s", {"layers": [1, 1, 1, 1], "embed_dims": [16, 16, 32, 32]},
        {"img_size": 32}, 32),
    "shvit": ("shvit_s1", {}, {}, 32),
    "sknet": ("skresnet18", {"layers": [1, 1, 1, 1], "channels": [16, 16, 32, 32]}, {}, 32),
    "starnet": ("starnet_s050", {"depths": [1, 1, 1]}, {}, 32),
    "swiftformer": ("swiftformer_xs", {"layers": [1, 1, 1, 1], "embed_dims": [16, 16, 32, 32]},
        {"img_size": 32}, 32),
    "swin_transformer": ("swin_tiny_patch4_window7_224",
        {"embed_dim": 16, "depths": [1, 1, 1, 1], "num_heads": [1, 1, 2, 2]}, {"img_size": 32}, 32),
    "swin_transformer_v2": ("swinv2_tiny_window16_256", {"embed_dim": 16, "depths": [1, 1, 1, 1],
        "num_heads": [1, 1, 2, 2]}, {"img_size": 32}, 32),
    "swin_transformer_v2_cr": ("swinv2_cr_tiny_224", {"embed_dim": 16, "depths": [1, 1, 1, 1],
        "num_heads": [1, 1, 2, 2]}, {"img_size": 32}, 32),
    "tiny_vit": ("tiny_vit_5m_224", {"embed_dims": [16, 32, 32], "depths": [1, 1, 1],
        "num_heads": [1, 2, 2]}, {}, 32),
    "tnt": ("tnt_s_legacy_patch16_224", {"depth": 1}, {"img_size": 32}, 32),
    "tresnet": ("tresnet_m", {"layers": [1, 1, 1, 1]}, {}, 32),
    "twins": ("twins_svt_small", {"embed_dims": [16, 32, 32], "depths": [1, 1, 1], "num_heads": [1, 2, 2]},
        {"img_size": 32}, 32),
    "vgg": ("vgg11", {}, {}, 32),
    "visformer": ("visformer_tiny", {"embed_dim": 32, "depth": 1}, {"img_size": 32}, 32),
    "vision_transformer": ("test_vit", {"embed_dim": 16}, {"img_size": 32}, 32),
    "vision_transformer_hybrid": ("vit_tiny_r_s16_p8_224", {"embed_dim": 32, "depth": 1, "num_heads": 2},
        {"img_size": 32}, 32),
    "vision_transformer_relpos": ("test_vit_relpos", {"embed_dim": 32, "depth": 1, "num_heads": 2},
        {"img_size": 32}, 32),
    "vision_transformer_sam": ("samvit_base_patch16_224", {"embed_dim": 32, "depth": 1, "num_heads": 2},
        {"img_size": 32}, 32),
    "vitamin": ("vitamin_small_224", {"depth": 1}, {"img_size": 32}, 32),
    "volo": ("volo_d1_224", {}, {"img_size": 32}, 32),
    "vovnet": ("ese_vovnet19b_slim_dw", {}, {}, 32),
    "xception": ("legacy_xception", {}, {}, 32),
    "xception_aligned": ("xception41p", {}, {}, 32),
    "xcit": ("xcit_nano_12_p8_224", {"embed_dim": 32, "depth": 1, "num_heads": 2}, {"img_size": 32}, 32),
}  # fmt: skip
TIMM_WHOLE = """
beit byobnet cait convit convnext davit deepseek_vit deit dla edgenext efficientformer efficientformer_v2
efficientnet efficientvit_mit efficientvit_msra eva fasternet fastvit gcvit gemma4_vit ghostnet hiera
hieradet_sam2 inception_next lcnetv2 levit mambaout maxxvit mobilenetv3 mobilevit naflexvit nfnet pvt_v2
qwen3_vit repghost res2net resnest resnet resnetv2 sequencer sknet starnet swiftformer swin_transformer
swin_transformer_v2 swin_transformer_v2_cr tiny_vit twins visformer vision_transformer
vision_transformer_hybrid vision_transformer_relpos vision_transformer_sam vovnet xcit
""".split()  # of at most 1.5 million parameters


def timm_models():
    import timm
    from timm.layers import GlobalResponseNormMlp, Mlp, SwiGLU
    from timm.models.vision_transformer import Attention, Block

    names = ("test_vit", "test_vit2", "test_vit3", "test_resnet", "test_efficientnet",
             "test_efficientnet_gn", "test_efficientnet_ln",
             "test_convnext", "test_convnext2", "test_nfnet", "test_byobnet", "test_mambaout")  # fmt: skip
    made = {name: (lambda name=name: timm.create_model(name, num_classes=10), images(64)) for name in names}
    sequences = lambda batch: (torch.randn(batch, 9, 32),)  # noqa: E731
    for family, (entry, sizes, options, size) in TIMM_FAMILIES.items():
        whole = lambda entry=entry, sizes=sizes, options=options: timm.create_model(
            entry, num_classes=10, **sizes, **options
        )  # noqa: E731
        if family in TIMM_WHOLE:
            made[family] = (whole, images(size))
        made[f"{family}/block"] = _Block(family, whole, size)
    return {
        **made,
        "timm_block": (lambda: Block(32, 2), sequences),
        "timm_attention": (lambda: Attention(32, 2, qkv_bias=True), sequences),
        "timm_mlp": (lambda: Mlp(32, 64), sequences),
        "timm_swiglu": (lambda: SwiGLU(32, 64), sequences),
        "timm_grn_mlp": (lambda: GlobalResponseNormMlp(8, 16), lambda batch: (torch.randn(batch, 5, 5, 8),)),
    }


class _Block:
    """Of a family's own classes the submodule with the most parameters below `most`, on what it gets in the
    whole model; where all are larger, the smallest. Unpacks as a pair."""

    def __init__(self, family, whole, size, most=300_000):
        self._family, self._whole, self._size, self._most = family, whole, size, most
        self._arguments = None

    def __iter__(self):
        return iter((self._make, self._inputs))

    def _make(self):
        whole, seen, handles = self._whole().eval(), {}, []
        own = f"timm.models.{self._family}"
        named = [(name, part) for name, part in whole.named_modules() if name]
        parts = [(name, part) for name, part in named if type(part).__module__ == own]
        if not parts:  # built of timm's common layers
            parts = [(name, part) for name, part in named if type(part).__module__.startswith("timm.")]
        for name, part in parts:

            def see(part, args, kwargs, name=name):
                seen.setdefault(name, (part, args, kwargs))

            handles.append(part.register_forward_pre_hook(see, with_kwargs=True))
        with torch.no_grad():
            whole(torch.randn(2, 3, self._size, self._size))
        for handle in handles:
            handle.remove()
        sizes = {name: sum(p.numel() for p in part.parameters()) for name, (part, _, _) in seen.items()}
        few = {name: size for name, size in sizes.items() if size <= self._most}
        name = max(few, key=few.get) if few else min(sizes, key=sizes.get)
        part, args, kwargs = seen[name]
        names = list(inspect.signature(part.forward).parameters)
        self._arguments = {**dict(zip(names, args)), **kwargs}
        return part

    def _inputs(self, batch):
        if self._arguments is None:
            self._make()

        def sized(value):
            if not isinstance(value, torch.Tensor) or value.dim() == 0 or value.shape[0] % 2:
                return value
            shape = (value.shape[0] // 2 * batch, *value.shape[1:])
            return torch.randn(shape) if value.is_floating_point() else value[:1].expand(shape).contiguous()

        return {name: sized(value) for name, value in self._arguments.items()}


def transformers_heads():
    import transformers as t

    small = dict(vocab_size=99, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
                 intermediate_size=48, max_position_embeddings=32,
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
    encoder = dict(vocab_size=99, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                   decoder_attention_heads=2, encoder_ffn_dim=48,
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


# What a configuration gets, as far as it has such a key.
TRANSFORMERS_SIZES = dict(
    vocab_size=99, hidden_size=32, d_model=32, n_embd=32, dim=32, embed_dim=32, embedding_size=16,
    num_hidden_layers=1, n_layer=1,
    n_layers=1, num_layers=1, encoder_layers=1, decoder_layers=1, num_decoder_layers=1,
    num_attention_heads=2, n_head=2, n_heads=2,
    num_heads=2, num_key_value_heads=1, encoder_attention_heads=2, decoder_attention_heads=2, head_dim=16,
    d_kv=16,
    intermediate_size=48, ffn_dim=48, n_inner=48, d_ff=48, hidden_dim=48, encoder_ffn_dim=48,
    decoder_ffn_dim=48,
    max_position_embeddings=32, n_positions=32, image_size=32, patch_size=8, pad_token_id=0, bos_token_id=1,
    eos_token_id=2,
    use_cache=False, num_experts=4, num_local_experts=4, num_experts_per_tok=2, moe_intermediate_size=16,
    n_routed_experts=4,
    kv_lora_rank=16, q_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=16, sliding_window=16,
    encoder_hidden_size=32, decoder_hidden_size=32, state_size=4, time_step_rank=4, attention_hidden_size=32,
    rotary_dim=8,
)  # fmt: skip
TRANSFORMERS_LISTS = dict(
    hidden_sizes=(8, 16, 16, 32),
    depths=(1, 1, 1, 1),
    conv_dim=(16, 16),
    conv_stride=(5, 2),
    conv_kernel=(10, 3),
)
# Class, its configuration, keys that keep their default, and what forward takes.
TRANSFORMERS_MODELS = """
AfmoeModel AfmoeConfig - tokens
Aimv2VisionModel Aimv2VisionConfig - pixels
AlbertModel AlbertConfig - tokens
ApertusModel ApertusConfig - tokens
ArceeModel ArceeConfig - tokens
AriaTextModel AriaTextConfig - tokens
AXK1Model AXK1Config head_dim tokens
AXK2Model AXK2Config num_key_value_heads tokens
BailingHybridModel BailingHybridConfig - tokens
BartModel BartConfig - tokens
BeamModel BeamConfig - tokens
BeitModel BeitConfig - pixels
BertModel BertConfig - tokens
BertGenerationEncoder BertGenerationConfig - tokens
BigBirdModel BigBirdConfig - tokens
BigBirdPegasusModel BigBirdPegasusConfig - tokens
BioGptModel BioGptConfig - tokens
BitNetModel BitNetConfig - tokens
BlenderbotModel BlenderbotConfig - both
BlenderbotSmallModel BlenderbotSmallConfig - both
BloomModel BloomConfig - tokens
CamembertModel CamembertConfig - tokens
CanineModel CanineConfig - tokens
ChineseCLIPVisionModel ChineseCLIPVisionConfig - pixels
CLIPTextModel CLIPTextConfig - tokens
CLIPVisionModel CLIPVisionConfig - pixels
CohereModel CohereConfig - tokens
Cohere2Model Cohere2Config - tokens
Cohere2MoeModel Cohere2MoeConfig - tokens
ConvBertModel ConvBertConfig - tokens
Cosmos3EdgeTextModel Cosmos3EdgeTextConfig head_dim tokens
CpmAntModel CpmAntConfig - tokens
CTRLModel CTRLConfig - tokens
CwmModel CwmConfig - tokens
Data2VecTextModel Data2VecTextConfig - tokens
Data2VecVisionModel Data2VecVisionConfig - pixels
DebertaModel DebertaConfig - tokens
DebertaV2Model DebertaV2Config - tokens
DeepseekV2Model DeepseekV2Config - tokens
DeepseekV3Model DeepseekV3Config head_dim tokens
DeepseekV32Model DeepseekV32Config num_key_value_heads tokens
DeepseekV4Model DeepseekV4Config - tokens
DeiTModel DeiTConfig - pixels
DiffLlamaModel DiffLlamaConfig num_key_value_heads tokens
Dinov2Model Dinov2Config - pixels
Dinov2WithRegistersModel Dinov2WithRegistersConfig - pixels
DINOv3ConvNextModel DINOv3ConvNextConfig - pixels
DINOv3ViTModel DINOv3ViTConfig - pixels
DistilBertModel DistilBertConfig - tokens
DogeModel DogeConfig - tokens
DPRQuestionEncoder DPRConfig - tokens
DPTModel DPTConfig - pixels
ElectraModel ElectraConfig - tokens
EmbeddingGemma2TextModel EmbeddingGemma2TextConfig num_key_value_heads,head_dim tokens
ErnieModel ErnieConfig - tokens
Ernie4_5Model Ernie4_5Config - tokens
Ernie4_5_MoeModel Ernie4_5_MoeConfig - tokens
EsmModel EsmConfig - tokens
EsmcModel EsmcConfig num_key_value_heads tokens
EuroBertModel EuroBertConfig - tokens
Exaone4Model Exaone4Config - tokens
ExaoneMoeModel ExaoneMoeConfig - tokens
FalconModel FalconConfig head_dim tokens
FalconH1Model FalconH1Config - tokens
FalconMambaModel FalconMambaConfig - tokens
FlaubertModel FlaubertConfig - tokens
FlexOlmoModel FlexOlmoConfig - tokens
FlintModel FlintConfig - tokens
FNetModel FNetConfig - tokens
FocalNetModel FocalNetConfig - pixels
FSMTModel FSMTConfig - tokens
GemmaModel GemmaConfig - tokens
Gemma2Model Gemma2Config - tokens
Gemma3TextModel Gemma3TextConfig - tokens
Gemma4UnifiedTextModel Gemma4UnifiedTextConfig head_dim tokens
GlmModel GlmConfig - tokens
Glm4Model Glm4Config - tokens
Glm4MoeModel Glm4MoeConfig - tokens
Glm4MoeLiteModel Glm4MoeLiteConfig head_dim tokens
GlmMoeDsaModel GlmMoeDsaConfig num_key_value_heads tokens
GPT2Model GPT2Config - tokens
GPTBigCodeModel GPTBigCodeConfig - tokens
GPTNeoXModel GPTNeoXConfig - tokens
GPTNeoXJapaneseModel GPTNeoXJapaneseConfig - tokens
GptOssModel GptOssConfig - tokens
GPTJModel GPTJConfig - tokens
GraniteModel GraniteConfig - tokens
GraniteDoclingTextModel GraniteDoclingTextConfig - tokens
GraniteSWAModel GraniteSWAConfig - tokens
GraniteMoeModel GraniteMoeConfig - tokens
GraniteMoeSWAModel GraniteMoeSWAConfig - tokens
GraniteMoeSharedModel GraniteMoeSharedConfig - tokens
GteModel GteConfig - tokens
HeliumModel HeliumConfig - tokens
HiggsAudioV2ForConditionalGeneration HiggsAudioV2Config - tokens
HrmTextModel HrmTextConfig - tokens
HunYuanDenseV1Model HunYuanDenseV1Config - tokens
HunYuanMoEV1Model HunYuanMoEV1Config - tokens
HYV3Model HYV3Config - tokens
HYV4Model HYV4Config - tokens
HyperCLOVAXModel HyperCLOVAXConfig - tokens
IBertModel IBertConfig - tokens
Idefics3VisionTransformer Idefics3VisionConfig - pixels
IJepaModel IJepaConfig - pixels
ImageGPTModel ImageGPTConfig - tokens
Inkling2TextModel Inkling2TextConfig - tokens
InklingTextModel InklingTextConfig - tokens
LlamaModel InternLM3Config - tokens
InternVLVisionModel InternVLVisionConfig - pixels
Jais2Model Jais2Config - tokens
JambaModel JambaConfig - tokens
JetMoeModel JetMoeConfig - tokens
JinaEmbeddingsV3Model JinaEmbeddingsV3Config - tokens
KimiLinearModel KimiLinearConfig - tokens
Kolibri1Model Kolibri1Config - tokens
LagunaModel LagunaConfig - tokens
LayoutLMModel LayoutLMConfig - tokens
LEDModel LEDConfig - tokens
Lfm2Model Lfm2Config - tokens
Lfm3Model Lfm3Config - tokens
Llama4TextModel Llama4TextConfig - tokens
"""


def transformers_models():
    made = {}
    for line in TRANSFORMERS_MODELS.split("\n"):
        if line:
            name, config, kept, kind = line.split()
            made[name] = (
                lambda name=name, config=config, kept=kept: _transformer(name, config, kept),
                _TRANSFORMER_INPUTS[kind],
            )
    return made


def _transformer(name, config, kept):
    import transformers

    kind = getattr(transformers, config)
    plain, taken = kind(), inspect.signature(kind.__init__).parameters
    sizes = {}
    for key, value in TRANSFORMERS_SIZES.items():
        default = getattr(plain, key, None)
        if (
            key not in kept.split(",")
            and (key in taken or hasattr(plain, key))
            and not isinstance(default, (list, tuple))
        ):
            sizes[key] = value
    for key, value in TRANSFORMERS_LISTS.items():
        default = getattr(plain, key, None)
        if isinstance(default, (list, tuple)):
            sizes[key] = [*value[: len(default)], *[value[-1]] * (len(default) - len(value))]
    return getattr(transformers, name)(kind(**sizes))


_TRANSFORMER_INPUTS = {
    "tokens": lambda batch: {"input_ids": torch.randint(3, 99, (batch, 7))},
    "both": lambda batch: {
        "input_ids": torch.randint(3, 99, (batch, 7)),
        "decoder_input_ids": torch.randint(3, 99, (batch, 5)),
    },
    "pixels": lambda batch: {"pixel_values": torch.randn(batch, 3, 32, 32)},
}


def diffusers_models():
    import diffusers as d

    def unet(b):
        return dict(sample=r(b, 4, 8, 8), timestep=torch.tensor([3] * b))

    return {
        "UNet2DModel": (
            lambda: d.UNet2DModel(
                sample_size=8,
                in_channels=4,
                out_channels=4,
                layers_per_block=1,
                block_out_channels=(8, 16),
                norm_num_groups=4,
                attention_head_dim=4,
                down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                up_block_types=("AttnUpBlock2D", "UpBlock2D"),
            ),
            unet,
        ),
        "UNet2DConditionModel": (
            lambda: d.UNet2DConditionModel(
                sample_size=8,
                layers_per_block=1,
                block_out_channels=(8, 16),
                norm_num_groups=4,
                cross_attention_dim=8,
                attention_head_dim=2,
                down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
                up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
            ),
            lambda b: dict(unet(b), encoder_hidden_states=r(b, 5, 8)),
        ),
        "AutoencoderKL": (
            lambda: d.AutoencoderKL(
                block_out_channels=(8, 16),
                norm_num_groups=4,
                layers_per_block=1,
                latent_channels=4,
                sample_size=16,
                down_block_types=("DownEncoderBlock2D",) * 2,
                up_block_types=("UpDecoderBlock2D",) * 2,
            ),
            lambda b: (r(b, 3, 16, 16),),
        ),
        "AutoencoderTiny": (
            lambda: d.AutoencoderTiny(
                encoder_block_out_channels=(8, 8),
                decoder_block_out_channels=(8, 8),
                num_encoder_blocks=(1, 1),
                num_decoder_blocks=(1, 1),
            ),
            lambda b: (r(b, 3, 16, 16),),
        ),
        "VQModel": (
            lambda: d.VQModel(
                block_out_channels=(8, 16),
                norm_num_groups=4,
                layers_per_block=1,
                latent_channels=3,
                num_vq_embeddings=16,
                down_block_types=("DownEncoderBlock2D",) * 2,
                up_block_types=("UpDecoderBlock2D",) * 2,
            ),
            lambda b: (r(b, 3, 16, 16),),
        ),
        "AsymmetricAutoencoderKL": (
            lambda: d.AsymmetricAutoencoderKL(
                down_block_out_channels=(8,),
                up_block_out_channels=(8,),
                norm_num_groups=4,
                down_block_types=("DownEncoderBlock2D",),
                up_block_types=("UpDecoderBlock2D",),
            ),
            lambda b: (r(b, 3, 16, 16),),
        ),
        "Transformer2DModel": (
            lambda: d.Transformer2DModel(
                num_attention_heads=2,
                attention_head_dim=8,
                in_channels=8,
                num_layers=1,
                norm_num_groups=4,
                cross_attention_dim=8,
            ),
            lambda b: dict(hidden_states=r(b, 8, 4, 4), encoder_hidden_states=r(b, 3, 8)),
        ),
        "DiTTransformer2DModel": (
            lambda: d.DiTTransformer2DModel(
                num_attention_heads=2,
                attention_head_dim=8,
                in_channels=4,
                num_layers=1,
                sample_size=8,
                num_embeds_ada_norm=10,
            ),
            lambda b: dict(
                hidden_states=r(b, 4, 8, 8),
                timestep=torch.tensor([3] * b),
                class_labels=torch.tensor([1] * b),
            ),
        ),
        "PixArtTransformer2DModel": (
            lambda: d.PixArtTransformer2DModel(
                num_attention_heads=2,
                attention_head_dim=8,
                in_channels=4,
                out_channels=8,
                num_layers=1,
                sample_size=8,
                cross_attention_dim=16,
                caption_channels=8,
            ),
            lambda b: dict(
                hidden_states=r(b, 4, 8, 8),
                encoder_hidden_states=r(b, 3, 8),
                timestep=torch.tensor([3] * b),
                added_cond_kwargs={"resolution": None, "aspect_ratio": None},
            ),
        ),
        "SD3Transformer2DModel": (
            lambda: d.SD3Transformer2DModel(
                sample_size=8,
                patch_size=2,
                in_channels=4,
                num_layers=1,
                attention_head_dim=8,
                num_attention_heads=2,
                joint_attention_dim=16,
                caption_projection_dim=16,
                pooled_projection_dim=16,
                out_channels=4,
                pos_embed_max_size=8,
            ),
            lambda b: dict(
                hidden_states=r(b, 4, 8, 8),
                encoder_hidden_states=r(b, 3, 16),
                pooled_projections=r(b, 16),
                timestep=torch.tensor([3] * b),
            ),
        ),
        "FluxTransformer2DModel": (
            lambda: d.FluxTransformer2DModel(
                patch_size=1,
                in_channels=4,
                num_layers=1,
                num_single_layers=1,
                attention_head_dim=16,
                num_attention_heads=2,
                joint_attention_dim=16,
                pooled_projection_dim=16,
                axes_dims_rope=(4, 4, 8),
            ),
            lambda b: dict(
                hidden_states=r(b, 16, 4),
                encoder_hidden_states=r(b, 3, 16),
                pooled_projections=r(b, 16),
                timestep=torch.tensor([0.5] * b),
                img_ids=torch.zeros(16, 3),
                txt_ids=torch.zeros(3, 3),
            ),
        ),
        "SanaTransformer2DModel": (
            lambda: d.SanaTransformer2DModel(
                in_channels=4,
                out_channels=4,
                num_attention_heads=2,
                attention_head_dim=8,
                num_layers=1,
                num_cross_attention_heads=2,
                cross_attention_head_dim=8,
                cross_attention_dim=16,
                caption_channels=8,
                sample_size=8,
            ),
            lambda b: dict(
                hidden_states=r(b, 4, 8, 8), encoder_hidden_states=r(b, 3, 8), timestep=torch.tensor([3] * b)
            ),
        ),
        "AuraFlowTransformer2DModel": (
            lambda: d.AuraFlowTransformer2DModel(
                sample_size=8,
                in_channels=4,
                num_mmdit_layers=1,
                num_single_dit_layers=1,
                attention_head_dim=8,
                num_attention_heads=2,
                joint_attention_dim=16,
                caption_projection_dim=16,
                out_channels=4,
                pos_embed_max_size=16,
            ),
            lambda b: dict(
                hidden_states=r(b, 4, 8, 8),
                encoder_hidden_states=r(b, 3, 16),
                timestep=torch.tensor([0.5] * b),
            ),
        ),
        "PriorTransformer": (
            lambda: d.PriorTransformer(
                num_attention_heads=2,
                attention_head_dim=8,
                num_layers=1,
                embedding_dim=8,
                num_embeddings=5,
                additional_embeddings=4,
            ),
            lambda b: dict(
                hidden_states=r(b, 8),
                timestep=torch.tensor([3] * b),
                proj_embedding=r(b, 8),
                encoder_hidden_states=r(b, 5, 8),
            ),
        ),
        "ControlNetModel": (
            lambda: d.ControlNetModel(
                block_out_channels=(8, 16),
                layers_per_block=1,
                norm_num_groups=4,
                cross_attention_dim=8,
                attention_head_dim=2,
                conditioning_embedding_out_channels=(8, 8),
                down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
            ),
            lambda b: dict(unet(b), encoder_hidden_states=r(b, 5, 8), controlnet_cond=r(b, 3, 16, 16)),
        ),
        "T2IAdapter": (
            lambda: d.T2IAdapter(channels=[8, 16], num_res_blocks=1, downscale_factor=4),
            lambda b: (r(b, 3, 16, 16),),
        ),
        "LTXVideoTransformer3DModel": (
            lambda: d.LTXVideoTransformer3DModel(
                in_channels=4,
                out_channels=4,
                num_attention_heads=2,
                attention_head_dim=8,
                cross_attention_dim=16,
                num_layers=1,
                caption_channels=16,
            ),
            lambda b: dict(
                hidden_states=r(b, 16, 4),
                encoder_hidden_states=r(b, 3, 16),
                timestep=torch.tensor([3] * b),
                encoder_attention_mask=torch.ones(b, 3).bool(),
                num_frames=1,
                height=4,
                width=4,
            ),
        ),
        "CogVideoXTransformer3DModel": (
            lambda: d.CogVideoXTransformer3DModel(
                num_attention_heads=2,
                attention_head_dim=8,
                in_channels=4,
                out_channels=4,
                time_embed_dim=8,
                text_embed_dim=8,
                num_layers=1,
                sample_width=8,
                sample_height=8,
                sample_frames=4,
                max_text_seq_length=3,
                patch_size=2,
                temporal_compression_ratio=4,
            ),
            lambda b: dict(
                hidden_states=r(b, 1, 4, 8, 8),
                encoder_hidden_states=r(b, 3, 8),
                timestep=torch.tensor([3] * b),
            ),
        ),
        "Lumina2Transformer2DModel": (
            lambda: d.Lumina2Transformer2DModel(
                sample_size=8,
                patch_size=2,
                in_channels=4,
                hidden_size=24,
                num_layers=1,
                num_refiner_layers=1,
                num_attention_heads=3,
                num_kv_heads=1,
                multiple_of=2,
                ffn_dim_multiplier=None,
                norm_eps=1e-5,
                scaling_factor=1.0,
                axes_dim_rope=(4, 2, 2),
                axes_lens=(32, 32, 32),
                cap_feat_dim=16,
            ),
            lambda b: dict(
                hidden_states=r(b, 4, 8, 8),
                encoder_hidden_states=r(b, 3, 16),
                timestep=torch.tensor([0.5] * b),
                encoder_attention_mask=torch.ones(b, 3).bool(),
            ),
        ),
        "ResnetBlock2D": (
            lambda: importlib.import_module("diffusers.models.resnet").ResnetBlock2D(
                in_channels=8, out_channels=16, temb_channels=12, groups=4
            ),
            lambda b: (r(b, 8, 6, 6), r(b, 12)),
        ),
        "BasicTransformerBlock": (
            lambda: importlib.import_module("diffusers.models.attention").BasicTransformerBlock(
                16, 2, 8, cross_attention_dim=8
            ),
            lambda b: dict(hidden_states=r(b, 6, 16), encoder_hidden_states=r(b, 3, 8)),
        ),
    }


def torchaudio_modules():
    import torchaudio.models as A
    import torchaudio.transforms as T

    return {
        "DeepSpeech": (lambda: A.DeepSpeech(n_feature=8, n_hidden=16, n_class=6), lambda b: (r(b, 1, 9, 8),)),
        "Conformer": (
            lambda: A.Conformer(
                input_dim=16, num_heads=2, ffn_dim=24, num_layers=1, depthwise_conv_kernel_size=5
            ),
            lambda b: (r(b, 9, 16), torch.tensor([9] * b)),
        ),
        "Emformer": (
            lambda: A.Emformer(16, 2, 24, 1, segment_length=4, right_context_length=1),
            lambda b: (r(b, 9, 16), torch.tensor([8] * b)),
        ),
        "ConvTasNet": (
            lambda: A.ConvTasNet(
                num_sources=2,
                enc_kernel_size=8,
                enc_num_feats=16,
                msk_kernel_size=3,
                msk_num_feats=8,
                msk_num_hidden_feats=16,
                msk_num_layers=2,
                msk_num_stacks=1,
            ),
            lambda b: (r(b, 1, 64),),
        ),
        "HDemucs": (
            lambda: A.HDemucs(sources=["a", "b"], audio_channels=1, channels=8, nfft=64, depth=2),
            lambda b: (r(b, 1, 256),),
        ),
        "Tacotron2_encoder": (
            lambda: importlib.import_module("torchaudio.models.tacotron2")._Encoder(16, 2, 5),
            lambda b: (r(b, 16, 9), torch.tensor([9] * b)),
        ),
        "Tacotron2_postnet": (
            lambda: importlib.import_module("torchaudio.models.tacotron2")._Postnet(8, 16, 5, 2),
            lambda b: (r(b, 8, 9),),
        ),
        "WaveRNN_melresnet": (
            lambda: importlib.import_module("torchaudio.models.wavernn").MelResNet(2, 8, 16, 12, 3),
            lambda b: (r(b, 8, 12),),
        ),
        "Spectrogram": (lambda: T.Spectrogram(n_fft=32), lambda b: (r(b, 128),)),
        "MelScale": (lambda: T.MelScale(n_mels=8, n_stft=17), lambda b: (r(b, 17, 6).abs(),)),
        "AmplitudeToDB": (lambda: T.AmplitudeToDB(), lambda b: (r(b, 17, 6).abs(),)),
        "MuLawEncoding": (lambda: T.MuLawEncoding(), lambda b: (r(b, 64).tanh(),)),
        "ComputeDeltas": (lambda: T.ComputeDeltas(), lambda b: (r(b, 8, 12),)),
        "SlidingWindowCmn": (lambda: T.SlidingWindowCmn(), lambda b: (r(b, 12, 8),)),
        "Fade": (lambda: T.Fade(8, 8), lambda b: (r(b, 64),)),
        "Resample": (lambda: T.Resample(160, 80), lambda b: (r(b, 320),)),
    }
