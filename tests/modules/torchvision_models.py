"""torchvision's models as references: the name of its builder, the builder's arguments, and the inputs.

Weights are random, inputs small, and the models in evaluation except where the name says otherwise. Left out
are the detectors (their outputs' sizes depend on data), MViT (heavy at the only size it takes) and the models
of more than 100 million parameters.
"""

IMAGE = "torch.randn(1, 3, 64, 64)"
CLIP = "torch.randn(1, 3, 4, 56, 56)"

# family: (names, arguments of the builder, inputs)
FAMILIES = [
    ("alexnet", "", IMAGE),
    ("convnext_tiny convnext_small convnext_base", "", IMAGE),
    ("densenet121 densenet161 densenet169 densenet201", "", IMAGE),
    (
        "efficientnet_b0 efficientnet_b1 efficientnet_b2 efficientnet_b3 efficientnet_b4 efficientnet_b5",
        "",
        IMAGE,
    ),
    ("efficientnet_v2_s efficientnet_v2_m", "", IMAGE),
    ("googlenet", "init_weights=False, aux_logits=False", IMAGE),
    ("inception_v3", "init_weights=False", "torch.randn(1, 3, 96, 96)"),
    ("maxvit_t", "", "torch.randn(1, 3, 224, 224)"),
    ("mnasnet0_5 mnasnet0_75 mnasnet1_0 mnasnet1_3", "", IMAGE),
    ("mobilenet_v2 mobilenet_v3_large mobilenet_v3_small", "", IMAGE),
    ("regnet_x_400mf regnet_x_800mf regnet_x_1_6gf regnet_x_3_2gf regnet_x_8gf", "", IMAGE),
    ("regnet_y_400mf regnet_y_800mf regnet_y_1_6gf regnet_y_3_2gf regnet_y_8gf", "", IMAGE),
    ("resnet18 resnet34 resnet50 resnet101 resnet152", "", IMAGE),
    ("resnext50_32x4d resnext101_32x8d resnext101_64x4d wide_resnet50_2", "", IMAGE),
    ("shufflenet_v2_x0_5 shufflenet_v2_x1_0 shufflenet_v2_x1_5 shufflenet_v2_x2_0", "", IMAGE),
    ("squeezenet1_0 squeezenet1_1", "", IMAGE),
    ("swin_t swin_s swin_b swin_v2_t swin_v2_s swin_v2_b", "", IMAGE),
    ("vgg11 vgg11_bn vgg13_bn vgg16 vgg19_bn", "classes_only=True", IMAGE),
    ("vit_b_16 vit_b_32", "image_size=64", IMAGE),
    (
        "deeplabv3_mobilenet_v3_large deeplabv3_resnet50 fcn_resnet50 lraspp_mobilenet_v3_large",
        "weights_backbone=None",
        IMAGE,
    ),
    ("mc3_18 r3d_18 r2plus1d_18", "", CLIP),
    ("s3d", "", "torch.randn(1, 3, 16, 224, 224)"),
    ("swin3d_t swin3d_s", "", CLIP),
    ("raft_small", "", "torch.randn(1, 3, 128, 128), torch.randn(1, 3, 128, 128)"),
]

# Also in training mode, where batch norms and dropouts behave otherwise.
TRAINED = ["resnet18", "mobilenet_v3_small", "shufflenet_v2_x0_5", "efficientnet_b0", "densenet121", "swin_t"]


def entries():
    """(name, builder, arguments, inputs, training) for every reference."""
    for names, arguments, inputs in FAMILIES:
        for name in names.split():
            yield name, name, arguments, inputs, False
    for name in TRAINED:
        yield f"{name}_train", name, "", IMAGE.replace("(1,", "(2,"), True
