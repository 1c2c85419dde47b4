"""Losses and optimizers of the trainer against a few lines of PyTorch: values and gradients."""

import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
from check_program import check
from transformers import LlamaForCausalLM
from transformers.utils import logging

logging.disable_progress_bar()


def close(ours, theirs, tolerance, what):
    worst = (ours.double() - theirs.double()).abs().max().item() / max(
        theirs.double().abs().max().item(), 1e-30
    )
    assert worst <= tolerance, f"{what}: relative difference {worst}, at most {tolerance} expected"


def head(dtype, tokens=37, vocab=83, share=0.4):
    generator = torch.Generator().manual_seed(tokens)
    hidden = torch.randn(tokens, 24, generator=generator).to(dtype)
    weight = torch.randn(vocab, 24, generator=generator).to(dtype)
    targets = torch.randint(vocab, (tokens,), generator=generator)
    targets[torch.rand(tokens, generator=generator) > share] = -100
    return hidden, weight, targets


def reference(hidden, weight):
    hidden, weight = hidden.double().requires_grad_(), weight.double().requires_grad_()
    return hidden, weight, torch.nn.functional.linear(hidden, weight)


for dtype, tolerance in ((torch.float32, 2e-6), (torch.bfloat16, 0.02)):
    for chunk in (0, 1, 4, 1000):
        hidden, weight, targets = head(dtype)
        ours = check(
            "cross_entropy", {"hidden": hidden, "weight": weight, "targets": targets}, scale=0.25, chunk=chunk
        )
        h, w, logits = reference(hidden, weight)
        loss = 0.25 * torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
        (3 * loss).backward()
        close(ours["loss"], loss.detach(), tolerance, f"cross entropy of {dtype} by {chunk}")
        assert ours["without_gradient"] == ours["loss"]
        close(ours["hidden"], h.grad, tolerance, f"its gradient by hidden, {dtype} by {chunk}")
        close(ours["weight"], w.grad, tolerance, f"its gradient by weight, {dtype} by {chunk}")
        assert ours["hidden"].dtype == ours["weight"].dtype == dtype

        factors = torch.randn(len(targets))
        ours = check(
            "token_scores",
            {"hidden": hidden, "weight": weight, "targets": targets, "factors": factors},
            chunk=chunk,
        )
        h, w, logits = reference(hidden, weight)
        logs = torch.log_softmax(logits, 1)
        learnt = targets != -100
        scores = torch.where(learnt, logs.gather(1, targets.clamp_min(0).unsqueeze(1)).squeeze(1), 0)
        (scores * factors).sum().backward()
        close(ours["log_probabilities"], scores.detach(), tolerance, f"log-probabilities of {dtype}")
        close(
            ours["entropies"],
            torch.where(learnt, -(logs.exp() * logs).sum(1), 0).detach(),
            max(tolerance, 1e-5),
            f"entropies of {dtype}",
        )
        close(ours["hidden"], h.grad, tolerance, f"gradient of log-probabilities by hidden, {dtype}")
        close(ours["weight"], w.grad, tolerance, f"gradient of log-probabilities by weight, {dtype}")

# No target at all is a loss of 0 with gradients of 0, not a NaN.
hidden, weight, targets = head(torch.float32, share=0)
ours = check("cross_entropy", {"hidden": hidden, "weight": weight, "targets": targets}, scale=1, chunk=0)
assert ours["loss"] == 0 and not ours["hidden"].any() and not ours["weight"].any()

# An update of reinforcement learning with examples besides: the sum of both losses' gradients, in a whole
# model.
generator = torch.Generator().manual_seed(11)
tokens, examples, factors = (
    torch.randint(19, (23,), generator=generator),
    torch.randint(19, (31,), generator=generator),
    torch.randn(23, generator=generator),
)
for weight in (0.0, 0.7):
    with tempfile.TemporaryDirectory() as scratch:
        ours = check(
            "update",
            {"tokens": tokens, "examples": examples, "factors": factors},
            folder=f"{scratch}/model",
            weight=weight,
            begin=9,
        )
        reference_model = LlamaForCausalLM.from_pretrained(f"{scratch}/model", dtype=torch.float32).double()

    def scores(document):
        return (
            torch.log_softmax(reference_model(document[None]).logits[0, :-1], 1)
            .gather(1, document[1:, None])
            .squeeze(1)
        )

    supervised = weight * -scores(examples)[9:].mean()
    (supervised + (factors[:-1] * scores(tokens)).sum()).backward()
    close(ours.pop("loss"), supervised.detach(), 1e-5, f"the loss besides, {weight} times")
    gradients = {name: parameter.grad for name, parameter in reference_model.named_parameters()}
    close(
        ours.pop("norm"), torch.stack([g.norm() for g in gradients.values()]).norm(), 1e-5, "the norm of both"
    )
    assert ours.keys() <= gradients.keys() and len(ours) >= 20, sorted(ours)
    for name, gradient in ours.items():
        close(gradient, gradients[name], 1e-4, f"the gradient of both by {name}, {weight} times")

# AdamW, and Muon with AdamW for what is no matrix of a layer: torch.optim's, for some steps, whole and in
# parts.
layout = check("layout", {"none": torch.zeros(1)})
elements = int(layout.pop("elements"))
offsets = {name: int(offset) for name, offset in layout.items()}
generator = torch.Generator().manual_seed(5)
STEPS, LR, MUON_LR = 6, 0.01, 0.05
shapes = {
    name: value.shape
    for name, value in check(
        "optimizer_steps",
        {"master": torch.zeros(elements), "gradients": torch.zeros(1, elements), "shares": torch.ones(1)},
        kind="adamw",
        learning_rate=LR,
        muon_learning_rate=MUON_LR,
        parts=1,
    ).items()
}
covered = torch.zeros(elements)
for name, shape in shapes.items():
    covered[offsets[name] : offsets[name] + shape.numel()] = 1
master = torch.randn(elements, generator=generator) * covered
gradients = torch.randn(STEPS, elements, generator=generator) * covered
shares = torch.linspace(0.5, 1, STEPS)
for kind in ("adamw", "muon"):
    parameters = {
        name: torch.nn.Parameter(master[offsets[name] : offsets[name] + shape.numel()].view(shape).clone())
        for name, shape in shapes.items()
    }
    muons = [n for n in parameters if kind == "muon" and ".layers." in n and parameters[n].dim() == 2]
    decayed = [n for n in parameters if n not in muons and parameters[n].dim() == 2]
    plain = [n for n in parameters if parameters[n].dim() == 1]
    adamw = torch.optim.AdamW(
        [
            {"params": [parameters[n] for n in decayed], "weight_decay": 0.1},
            {"params": [parameters[n] for n in plain], "weight_decay": 0.0},
        ],
        lr=LR,
        betas=(0.9, 0.95),
        eps=1e-8,
    )
    optimizers = [(adamw, LR)]
    if muons:
        optimizers.append(
            (
                torch.optim.Muon([parameters[n] for n in muons], lr=MUON_LR, weight_decay=0.1, momentum=0.95),
                MUON_LR,
            )
        )
        assert len(muons) == 14
    for step in range(STEPS):
        for name, parameter in parameters.items():
            parameter.grad = (
                gradients[step, offsets[name] : offsets[name] + parameter.numel()]
                .view(parameter.shape)
                .clone()
            )
        for optimizer, rate in optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * shares[step].item()
            optimizer.step()
    for parts in (1, 3):
        ours = check(
            "optimizer_steps",
            {"master": master, "gradients": gradients, "shares": shares},
            kind=kind,
            learning_rate=LR,
            muon_learning_rate=MUON_LR,
            parts=parts,
        )
        assert ours.keys() == parameters.keys()
        for name, value in parameters.items():
            close(
                ours[name],
                value.detach(),
                1e-6 if name not in muons else 1e-3,
                f"{kind} of {name} in {parts} parts",
            )
print("losses and optimizers are PyTorch's")
