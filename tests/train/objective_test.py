"""Objectives of reinforcement learning against a few lines of PyTorch: the loss, and its gradient by every
token's log-probability."""

import math

import torch
from check_program import check


def advantages(rewards, baseline):
    if len(rewards) < 2 or (rewards == rewards[0]).all():
        return torch.zeros_like(rewards)
    if baseline == "normalized":
        return (rewards - rewards.mean()) / (rewards.std() + 1e-6)
    if baseline == "mean":
        return rewards - rewards.mean()
    return torch.stack([r - torch.cat([rewards[:i], rewards[i + 1 :]]).mean() for i, r in enumerate(rewards)])


def ppo(new, old, advantage):
    ratio = (new - old).exp()
    return torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)


def grpo(new, old, plans, valid, correct, speedup, groups, baseline, beta, delta):
    worth = torch.cat([advantages((valid * correct)[a:b], baseline) for a, b in groups])
    return -torch.stack([ppo(n, o, w).mean() for n, o, w in zip(new, old, worth)]).mean()


def log_speed(right, speedup, groups):
    """Relative to the mean of the group's right ones, at most twice as fast or slow; a wrong one costs
    0.3."""
    found = torch.zeros_like(speedup)
    for a, b in groups:
        logs = speedup[a:b].log()
        if (good := right[a:b].bool()).any():
            found[a:b] = torch.where(good, (logs - logs[good].mean()).clamp(math.log(0.5), math.log(2)), -0.3)
    return found


def hrd(new, old, plans, valid, correct, speedup, groups, baseline, beta, delta, price=-1):
    loss, right = 0, valid * correct
    of_plan = right * speedup.clamp(max=2) if price < 0 else log_speed(right, speedup, groups)
    for reward, part, weight in ((of_plan, lambda x, p: x[:p], 0.1), (right, lambda x, p: x[p:], 1.0)):
        worth = torch.cat([advantages(reward[a:b], baseline) for a, b in groups])
        tokens = torch.cat([ppo(part(n, p), part(o, p), w) for n, o, p, w in zip(new, old, plans, worth)])
        loss = loss - weight * tokens.mean()
    return loss


def best(new, old, plans, valid, correct, speedup, groups, baseline, beta, delta, price=0, apart=False):
    right, worth = (valid * correct).bool(), torch.zeros_like(speedup)
    for a, b in groups:
        logs = speedup[a:b].log()
        if right[a:b].any():
            worth[a:b] = torch.where(
                right[a:b], (logs - logs[right[a:b]].mean()).clamp(0, math.log(2)), -price
            )
    of_plan = worth
    if apart:  # plans by what such a choice is worth, codes copied
        rewards = log_speed(right.double(), speedup, groups)
        of_plan = torch.cat([rewards[a:b] - rewards[a:b].mean() for a, b in groups])
    pushed = [torch.where(torch.arange(len(n)) < p, v, w) for n, p, v, w in zip(new, plans, of_plan, worth)]
    return (
        -torch.cat([ppo(n, o, w) for n, o, w in zip(new, old, pushed)]).sum() / torch.cat(pushed).abs().sum()
    )


def drpo(new, old, plans, valid, correct, speedup, groups, baseline, beta, delta):
    s, good, loss = torch.stack([n.mean() for n in new]), (valid * correct).bool(), 0
    for a, b in groups:
        g = good[a:b]
        if not g.any():
            continue
        loss = loss - (torch.softmax(speedup[a:b][g].log() / 0.1, 0) * s[a:b][g]).sum()
        if (~g).any():
            loss = loss + 5 * (s[a:b][~g] / 5).exp().mean().log()
    log_ratio = torch.cat(new) - torch.cat(old)
    kl = (log_ratio.exp() - 1 - log_ratio).mean()
    return loss / len(groups) + beta * (kl - delta).clamp_min(0) ** 2


def log_hrd(*arguments):
    return hrd(*arguments, price=0.3)


def priced_best(*arguments):
    return best(*arguments, price=0.3)


def planned_best(*arguments):
    return best(*arguments, apart=True)


count = 0
for seed in range(4):
    torch.manual_seed(seed)
    groups = [(0, 4), (4, 9), (9, 12)]
    lengths = torch.randint(2, 30, (12,))
    plans = (torch.rand(12) * lengths).long().clamp_min(1)
    valid, correct = (torch.rand(12) < 0.8).double(), (torch.rand(12) < 0.5).double()
    if seed == 1:
        correct[4:9] = 0
    if seed == 2:
        valid[:4], correct[:4] = 1, 1
    speedup = torch.rand(12).double() * 3 + 0.1
    flat = -3 * torch.rand(int(lengths.sum()))
    old = flat + (torch.rand(len(flat)) - 0.5) * (0.9 if seed % 2 else 0.2)
    offsets = [0, *lengths.cumsum(0).tolist()]
    for kind in (grpo, hrd, log_hrd, best, priced_best, planned_best, drpo):
        # Each looks at a baseline, or at beta and delta.
        for baseline in (
            ("normalized",)
            if kind in (best, priced_best, planned_best, drpo)
            else ("normalized", "mean", "leave_one_out")
        ):
            for beta, delta in ((1000, 1e-4), (3, 0.05)) if kind is drpo else ((0, 0),):
                leaf = flat.double().requires_grad_()
                cut = lambda x: [x[a:b] for a, b in zip(offsets, offsets[1:])]
                loss = kind(
                    cut(leaf),
                    cut(old.double()),
                    plans.tolist(),
                    valid,
                    correct,
                    speedup,
                    groups,
                    baseline,
                    beta,
                    delta,
                )
                loss.backward()
                ours = check(
                    "objective",
                    {
                        "new": flat,
                        "old": old,
                        "lengths": lengths,
                        "plans": plans,
                        "judged": torch.stack([valid, correct, speedup], 1),
                        "groups": torch.tensor([0, 4, 9, 12]),
                    },
                    kind=kind.__name__.split("_")[-1],
                    baseline=baseline,
                    incorrect_penalty=0.3 if kind in (log_hrd, priced_best) else -1,
                    plan_incorrect_penalty=0.3 if kind is planned_best else -1,
                    beta=beta,
                    delta=delta,
                )
                case = (kind.__name__, baseline, seed, beta)
                assert abs(ours["loss"] - loss.detach()) <= 1e-6 * max(1, abs(loss.item())), (
                    case,
                    ours["loss"],
                    loss,
                )
                assert (ours["gradients"] - leaf.grad).abs().max() <= 1e-6 * max(1, leaf.grad.abs().max()), (
                    case
                )
                count += 1


def trloo(new, old, plans, valid, correct, speedup, conversations, discount, kind):
    """Turns of conversations: a return is the reward and a share of the next turn's; its baseline is
    n / (n - 1) times the difference from the mean of the same turn of the same prompt."""
    right = valid * correct
    of_plan = right * speedup.clamp(max=2) if kind == "hrd" else right
    loss, worths = 0, []
    for reward in (of_plan, right):
        returns = reward.clone()
        for answers in conversations.values():
            for now, then in reversed(list(zip(answers, answers[1:]))):
                returns[now] = reward[now] + discount * returns[then]
        worth = torch.zeros_like(returns)
        for turn in {
            (prompt, t) for (prompt, _), answers in conversations.items() for t in range(len(answers))
        }:
            same = [
                a[turn[1]]
                for (prompt, _), a in conversations.items()
                if prompt == turn[0] and len(a) > turn[1]
            ]
            n = len(same)
            if n > 1:
                worth[same] = n / (n - 1) * (returns[same] - returns[same].mean())
        worths.append(worth)
    if kind == "grpo":
        return -torch.stack([ppo(n, o, w).mean() for n, o, w in zip(new, old, worths[1])]).mean()
    for worth, part, weight in zip(worths, (lambda x, p: x[:p], lambda x, p: x[p:]), (0.1, 1.0)):
        tokens = torch.cat([ppo(part(n, p), part(o, p), w) for n, o, p, w in zip(new, old, plans, worth)])
        loss = loss - weight * tokens.mean()
    return loss


for seed in range(4):
    torch.manual_seed(100 + seed)
    # Two prompts, 4 conversations each; an answer that is right ends its own. By prompts, turns, samples.
    valid, correct, turns, alive = [], [], [], {(p, s) for p in range(2) for s in range(4)}
    rows, groups = [], [0]
    for p in range(2):
        for turn in range(3):
            for s in range(4):
                if (p, s) in alive:
                    good = float(torch.rand(()) < 0.35)
                    rows.append((p, s, turn, good))
                    if good:
                        alive.discard((p, s))
            if len(rows) > groups[-1]:
                groups.append(len(rows))
    conversations = {}
    for i, (p, s, *_) in enumerate(rows):
        conversations.setdefault((p, s), []).append(i)
    following = torch.full((len(rows),), -1)
    for answers in conversations.values():
        for now, then in zip(answers, answers[1:]):
            following[now] = then
    correct = torch.tensor([row[3] for row in rows]).double()
    valid = torch.maximum(correct, (torch.rand(len(rows)) < 0.8).double())
    speedup = torch.rand(len(rows)).double() * 3 + 0.1
    lengths = torch.randint(2, 30, (len(rows),))
    plans = (torch.rand(len(rows)) * lengths).long().clamp_min(1)
    flat = -3 * torch.rand(int(lengths.sum()))
    old = flat + (torch.rand(len(flat)) - 0.5) * 0.3
    offsets = [0, *lengths.cumsum(0).tolist()]
    cut = lambda x: [x[a:b] for a, b in zip(offsets, offsets[1:])]
    for kind in ("grpo", "hrd"):
        for discount in (0.0, 0.4, 1.0):
            leaf = flat.double().requires_grad_()
            loss = trloo(
                cut(leaf),
                cut(old.double()),
                plans.tolist(),
                valid,
                correct,
                speedup,
                conversations,
                discount,
                kind,
            )
            loss.backward()
            ours = check(
                "objective",
                {
                    "new": flat, "old": old, "lengths": lengths, "plans": plans, "next": following,
                    "judged": torch.stack([valid, correct, speedup], 1), "groups": torch.tensor(groups),
                },
                kind=kind, baseline="leave_one_out", discount=discount, incorrect_penalty=-1,
                plan_incorrect_penalty=-1, beta=0, delta=0,
            )  # fmt: skip
            assert abs(ours["loss"] - loss.detach()) <= 1e-6 * max(1, abs(loss.item())), (
                kind,
                discount,
                seed,
            )
            assert (ours["gradients"] - leaf.grad).abs().max() <= 1e-6 * max(1, leaf.grad.abs().max())
            count += 1
print(f"{count} losses and gradients are PyTorch's")
